"""Qwen 4's indexer scores blocks of positions by the mean of their keys, and loops over tokens.

Some layers add embeddings of n-grams, found by hashes of the last tokens, and a convolution over them.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F
from transformers.models.qwen4_exp.modeling_qwen4_exp import apply_rotary_pos_emb

from llm_export.errors import UnsupportedError

MOST_IDS = 1 << 24  # that a float32 counts exactly


def patch(model, context) -> None:
    if model.config.ple_layer_ids and model.config.vocab_size > MOST_IDS:
        raise UnsupportedError(context.model_type, f"its n-grams are of tokens with ids of {MOST_IDS} and more")
    (rotary,) = (module for name, module in model.named_modules() if name.endswith("rotary_emb"))
    for module in model.modules():
        if hasattr(module, "index_qk_proj"):
            module.forward = _forward(module, rotary, context)
        if hasattr(module, "ngram_embedding"):
            module.forward = _embed_ngrams(module, context)
        if hasattr(module, "ple_embedding"):
            module._short_conv = _dilated(module.conv1d, context)


class _Seen:
    """A mask that says which keys are seen, in the one way in which attention uses it."""

    def __init__(self, mask: torch.Tensor):
        self.mask = mask

    def __invert__(self) -> _Seen:
        return self

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return args[1].mask  # attention_mask.masked_fill(~seen, ..)


def _forward(module: nn.Module, rotary: nn.Module, context):
    def forward(hidden_states, position_embeddings, *args, **kwargs):
        size, block = module.index_head_dim, module.compress_ratio
        q, raw = module.index_qk_proj(hidden_states).split((module.index_n_heads * size, size), dim=-1)
        q = module.q_layernorm(q.unflatten(-1, (-1, size)))
        q = apply_rotary_pos_emb(q, cos=position_embeddings[0], sin=position_embeddings[1], unsqueeze_dim=2)
        # The key of a block is that of its last token: a mean over the block, at the position where it begins.
        mean = torch.tensor([[1.0 / block] * block] * size)
        keys = module.k_layernorm(context.short_conv(module, raw, mean, None)).unsqueeze(2)
        first = context.positions - (block - 1)
        cos, sin = rotary(hidden_states, first.expand(3, 1, -1))
        keys = apply_rotary_pos_emb(keys, cos=cos, sin=sin, unsqueeze_dim=2)
        chosen = context.indexer(module, q.transpose(1, 2), keys.transpose(1, 2), topk=module.block_topk, block=block)
        mask = torch.zeros(1, 1, 1, 1)
        context.masks[id(mask)] = mask, {"chosen": chosen}
        return _Seen(mask)

    return forward


def _embed_ngrams(module: nn.Module, context):
    size = module.ngram_size
    taps = [[float(tap == size - 1 - back) for tap in range(size)] for back in range(1, size)]

    def forward(input_ids, past_key_values):
        # The tokens before, as distances from the one that ends a text: states begin with zeros, as the text begins.
        distances = (input_ids - module.eos_token_id).to(torch.float32).unsqueeze(-1).expand(-1, -1, size - 1)
        previous = context.short_conv(module, distances, torch.tensor(taps), None)
        ids = torch.ops.mote.ngram_ids(
            input_ids, previous, module.layer_multipliers, sizes=module.head_vocab_sizes, eos=module.eos_token_id
        )
        return module.ngram_embedding(ids).flatten(-2)

    return forward


def _dilated(conv: nn.Conv1d, context):
    def forward(hidden_states, past_key_values):
        (step,) = conv.dilation
        weight = F.pad(conv.weight.transpose(1, 2), (step - 1, 0)).flatten(1)  # zeros before each of its columns
        return F.silu(context.short_conv(conv, hidden_states, weight, None))

    return forward
