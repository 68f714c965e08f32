"""GPT-J computes attention in a method of its own and never calls the attention interface."""

from __future__ import annotations

from transformers.models.gptj import modeling_gptj
from transformers.models.gptj.modeling_gptj import GPTJAttention


def prepare(implementation: str) -> None:
    modeling_gptj.GPTJ_ATTENTION_CLASSES[implementation] = GPTJAttention


def patch(model, context) -> None:
    for module in model.modules():
        if isinstance(module, GPTJAttention):
            module._attn = _attn(module, context)
            # The original repeats the whole table for each sequence of the batch.
            module._get_embed_positions = lambda position_ids, module=module: module.embed_positions[None]


def _attn(module: GPTJAttention, context):
    def attn(query, key, value, attention_mask=None):
        return context.attention(module, query, key, value, scale=1 / module.scale_attn).transpose(1, 2), None

    return attn
