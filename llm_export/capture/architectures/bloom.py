"""BLOOM adds ALiBi to the scores itself and never calls the attention interface."""

from __future__ import annotations

from transformers.models.bloom.modeling_bloom import BloomAttention, _get_alibi_slopes


def patch(model, context) -> None:
    for module in model.modules():
        if isinstance(module, BloomAttention):
            slopes = _get_alibi_slopes(module.num_heads, "cpu")
            module.register_buffer("alibi_slopes", slopes, persistent=False)
            module.forward = _forward(module, context)


def _forward(module: BloomAttention, context):
    def forward(hidden_states, residual, *args, **kwargs):
        q, k, v = module._reshape(module.query_key_value(hidden_states))
        output = context.attention(module, q, k, v, scale=module.inv_norm_factor, alibi_slopes=module.alibi_slopes)
        return module.dense(output.flatten(2)) + residual, None

    return forward
