"""Falcon computes attention itself, with RoPE or ALiBi, and chooses its attention class by implementation name."""

from __future__ import annotations

from transformers.models.bloom.modeling_bloom import _get_alibi_slopes
from transformers.models.falcon import modeling_falcon
from transformers.models.falcon.modeling_falcon import FalconAttention

REFERENCE_ATTENTION = "sdpa"  # transformers' eager attention adds the bias of ALiBi twice


def prepare(implementation: str) -> None:
    modeling_falcon.FALCON_ATTENTION_CLASSES[implementation] = FalconAttention


def patch(model, context) -> None:
    for module in model.modules():
        if isinstance(module, FalconAttention):
            if model.config.alibi:
                # Falcon rounds its slopes to bfloat16 and scales them as it scales the scores.
                slopes = _get_alibi_slopes(module.num_heads, "cpu").bfloat16().float() * module.inv_norm_factor
                module.register_buffer("alibi_slopes", slopes, persistent=False)
            module.forward = _forward(module, context)


def _split(module: FalconAttention, fused):
    """Returns q [1, H, T, D] and k, v [1, Hkv, T, D], which Falcon itself repeats to H heads."""
    batch, tokens, _ = fused.shape
    if module.new_decoder_architecture:
        groups = module.num_heads // module.num_kv_heads
        fused = fused.view(batch, tokens, module.num_kv_heads, groups + 2, module.head_dim)
        q, k, v = fused[..., :-2, :].flatten(2, 3), fused[..., -2, :], fused[..., -1, :]
    elif module.multi_query:
        fused = fused.view(batch, tokens, module.num_heads + 2, module.head_dim)
        q, k, v = fused[..., :-2, :], fused[..., -2:-1, :], fused[..., -1:, :]
    else:
        fused = fused.view(batch, tokens, module.num_heads, 3, module.head_dim)
        q, k, v = fused[..., 0, :], fused[..., 1, :], fused[..., 2, :]
    return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)


def _forward(module: FalconAttention, context):
    def forward(hidden_states, alibi, attention_mask, position_embeddings=None, **kwargs):
        q, k, v = _split(module, module.query_key_value(hidden_states))
        slopes = getattr(module, "alibi_slopes", None)
        if slopes is None:
            q, k = modeling_falcon.apply_rotary_pos_emb(q, k, *position_embeddings)
        output = context.attention(module, q, k, v, scale=module.inv_norm_factor, alibi_slopes=slopes)
        return module.dense(output.flatten(2)), None

    return forward
