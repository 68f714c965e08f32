"""GPT-NeoX Japanese computes attention in a method of its own and never calls the attention interface."""

from __future__ import annotations

from transformers.models.gpt_neox_japanese.modeling_gpt_neox_japanese import GPTNeoXJapaneseAttention


def patch(model, context) -> None:
    for module in model.modules():
        if isinstance(module, GPTNeoXJapaneseAttention):
            module._attn = _attn(module, context)


def _attn(module: GPTNeoXJapaneseAttention, context):
    def attn(query, key, value, attention_mask=None):
        return context.attention(module, query, key, value, scale=1 / module.norm_factor).transpose(1, 2), None

    return attn
