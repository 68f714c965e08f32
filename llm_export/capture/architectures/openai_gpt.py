"""The first GPT computes attention in a method of its own and never calls the attention interface."""

from __future__ import annotations

from transformers.models.openai.modeling_openai import Attention


def patch(model, context) -> None:
    for module in model.modules():
        if isinstance(module, Attention):
            module._attn = _attn(module, context)


def _attn(module: Attention, context):
    def attn(query, key, value, attention_mask=None, output_attentions=False):
        scale = value.shape[-1] ** -0.5 if module.scale else 1.0
        # Keys come transposed, [1, H, D, T].
        return [context.attention(module, query, key.transpose(2, 3), value, scale=scale).transpose(1, 2)]

    return attn
