"""CodeGen computes attention in a method of its own and never calls the attention interface."""

from __future__ import annotations

from transformers.models.codegen.modeling_codegen import CodeGenAttention


def patch(model, context) -> None:
    for module in model.modules():
        if isinstance(module, CodeGenAttention):
            module._attn = _attn(module, context)


def _attn(module: CodeGenAttention, context):
    def attn(query, key, value, attention_mask=None):
        return context.attention(module, query, key, value, scale=1 / module.scale_attn).transpose(1, 2), None

    return attn
