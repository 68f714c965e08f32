"""MPT adds ALiBi to the scores itself and never calls the attention interface."""

from __future__ import annotations

import torch
from transformers.models.mpt.modeling_mpt import MptAttention, build_mpt_alibi_tensor


def patch(model, context) -> None:
    context.mask = torch.zeros(1, 1, 1, 1)  # the model converts its mask to bool before anybody reads it
    slopes = -build_mpt_alibi_tensor(model.config.n_heads, 2)[:, 0, 0]
    model.transformer.build_mpt_alibi_tensor = lambda *args, **kwargs: None
    for module in model.modules():
        if isinstance(module, MptAttention):
            module.register_buffer("alibi_slopes", slopes.clone(), persistent=False)
            module.forward = _forward(module, context)


def _forward(module: MptAttention, context):
    def forward(hidden_states, *args, **kwargs):
        qkv = module.Wqkv(hidden_states)
        if module.clip_qkv:
            qkv = qkv.clamp(min=-module.clip_qkv, max=module.clip_qkv)
        heads = (part.unflatten(-1, (module.n_heads, module.head_dim)).transpose(1, 2) for part in qkv.chunk(3, dim=2))
        output = context.attention(module, *heads, scale=module.softmax_scale, alibi_slopes=module.alibi_slopes)
        return module.out_proj(output.flatten(2)), None

    return forward
