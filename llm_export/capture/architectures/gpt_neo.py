"""GPT-Neo computes attention in a method of its own: unscaled, every other layer in a window."""

from __future__ import annotations

from transformers.models.gpt_neo import modeling_gpt_neo
from transformers.models.gpt_neo.modeling_gpt_neo import GPTNeoSelfAttention


def prepare(implementation: str) -> None:
    modeling_gpt_neo.GPT_NEO_ATTENTION_CLASSES[implementation] = GPTNeoSelfAttention


def patch(model, context) -> None:
    for module in model.modules():
        if isinstance(module, GPTNeoSelfAttention):
            module._attn = _attn(module, context)


def _attn(module: GPTNeoSelfAttention, context):
    window = module.config.window_size if module.attention_type == "local" else 0

    def attn(query, key, value, attention_mask=None):
        return context.attention(module, query, key, value, scale=1.0, window=window).transpose(1, 2), None

    return attn
