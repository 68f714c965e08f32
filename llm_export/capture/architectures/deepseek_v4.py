"""DeepSeek V4 attends to a window, and to the past as one key for each block of tokens, of which an indexer chooses.

The key of a block is a mean of its tokens with weights of each channel: a quotient of two causal convolutions, which a
token that does not end a block gets too, and which nobody reads there. What is seen of the window and of the blocks is
one softmax, in two calls.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers.models.deepseek_v4.modeling_deepseek_v4 import apply_rotary_pos_emb

LIMIT = 80.0  # e^80 and sums of it are float32


def patch(model, context) -> None:
    for module in model.modules():
        if getattr(module, "compressor", None) is not None:
            module.forward = _forward(module, context)


def _forward(module: nn.Module, context):
    def forward(hidden_states, position_embeddings, position_ids, attention_mask, past_key_values=None, **kwargs):
        cos, sin = position_embeddings[module.rope_layer_type]
        residual = module.q_a_norm(module.q_a_proj(hidden_states))
        q = module.q_b_norm(module.q_b_proj(residual).unflatten(-1, (-1, module.head_dim)))
        q = apply_rotary_pos_emb(q, cos, sin, unsqueeze_dim=2).transpose(1, 2)
        key = apply_rotary_pos_emb(module.kv_norm(module.kv_proj(hidden_states)).unsqueeze(1), cos, sin)
        near, of_near = context.attention(
            module, q, key, key, scale=module.scaling, window=module.sliding_window,
            sinks=module.sinks, with_lse=True,
        )  # fmt: skip
        compressor = module.compressor
        blocks = _keys_of_blocks(compressor, context, hidden_states)
        chosen = None
        if hasattr(compressor, "indexer"):
            chosen = _choice(compressor.indexer, context, hidden_states, residual)
        far, of_far = context.attention(
            compressor, q, blocks, blocks, scale=module.scaling, stride=compressor.compress_rate, chosen=chosen,
            with_lse=True,
        )  # fmt: skip
        share = torch.sigmoid(of_near - of_far).unsqueeze(-1)  # of all exponentials, those of the window
        output = apply_rotary_pos_emb(near * share + far * (1 - share), cos, -sin, unsqueeze_dim=2)
        grouped = module.o_a_proj(output.flatten(2).unflatten(-1, (module.config.o_groups, -1)))
        return module.o_b_proj(grouped.flatten(2)), None

    return forward


def _keys_of_blocks(module: nn.Module, context, hidden_states: Tensor) -> Tensor:
    """Returns [1, 1, T, head_dim]: at the last token of a block, its key."""
    width, rate = module.head_dim, module.compress_rate
    weights = module.gate_proj(hidden_states).clamp(-LIMIT, LIMIT).exp()
    bias = module.position_bias.exp().T  # [C, rate]
    if bias.shape[0] == 2 * width:  # the first half belongs to the block before
        taps = torch.cat((torch.cat((bias[:width], torch.zeros_like(bias[:width])), dim=1),
                          torch.cat((torch.zeros_like(bias[width:]), bias[width:]), dim=1)))  # fmt: skip
    else:
        taps = bias
    both = torch.cat((module.kv_proj(hidden_states) * weights, weights), dim=-1)  # [1, T, 2 C]
    sums = context.short_conv(module, both, torch.cat((taps, taps)).contiguous(), None)
    sums = sums.unflatten(-1, (2, -1, width)).sum(-2)  # [1, T, 2, head_dim]
    keys = module.kv_norm(sums[:, :, 0] / sums[:, :, 1])
    first = context.positions - (rate - 1)
    cos, sin = module.rotary_emb(keys, position_ids=first, layer_type=module.rope_layer_type)
    return apply_rotary_pos_emb(keys.unsqueeze(1), cos, sin)


def _choice(module: nn.Module, context, hidden_states: Tensor, residual: Tensor) -> Tensor:
    """Returns int64 [1, T, 1, index_topk]: the last positions of the blocks that each token attends to."""
    cos, sin = module.rotary_emb(hidden_states, position_ids=context.positions, layer_type=module.rope_layer_type)
    q = module.q_b_proj(residual).unflatten(-1, (-1, module.head_dim))
    q = apply_rotary_pos_emb(q, cos, sin, unsqueeze_dim=2).transpose(1, 2)
    scorer = module.scorer
    weights = scorer.weights_proj(hidden_states) * (scorer.weights_scaling * scorer.softmax_scale)
    keys = _keys_of_blocks(module, context, hidden_states)
    return context.indexer(module, q, keys, weights, topk=module.index_topk, stride=module.compress_rate)
