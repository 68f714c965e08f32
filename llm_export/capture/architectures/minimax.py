"""MiniMax's lightning attention decays by a constant for each head, and loops over blocks of tokens."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


def patch(model, context) -> None:
    for module in model.modules():
        if hasattr(module, "slope_rate"):
            module.forward = _forward(module, context)


def _forward(module: nn.Module, context):
    def forward(hidden_states, *args, **kwargs):
        heads = (1, hidden_states.shape[1], module.num_attention_heads, 3 * module.head_dim)
        q, k, v = module.act_fn(module.qkv_proj(hidden_states)).reshape(heads).split(module.head_dim, dim=3)
        decay = torch.exp(-module.slope_rate).reshape(1, 1, -1).expand(1, hidden_states.shape[1], -1)
        mixed = module.norm(context.linear_attention(module, q, k, v, decay).flatten(2))
        return module.out_proj(F.sigmoid(module.output_gate(hidden_states)) * mixed), None

    return forward
