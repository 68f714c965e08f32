"""Some of LongCat's experts are the identity, and have no matrices."""

from __future__ import annotations

import torch
from torch import nn


def patch(model, context) -> None:
    for module in model.modules():
        if hasattr(module, "zero_expert_num") and hasattr(module, "identity_expert"):
            module.forward = _forward(module)


def _forward(module: nn.Module):
    def forward(hidden_states, top_k_index, top_k_weights):
        count = module.num_routed_experts
        is_identity = top_k_index >= count
        weights = top_k_weights.to(hidden_states.dtype)
        routed = torch.ops.mote.moe_experts(
            hidden_states, top_k_index.masked_fill(is_identity, 0), weights.masked_fill(is_identity, 0.0),
            module.gate_up_proj[:count], module.down_proj, function="silu",
        )  # fmt: skip
        return routed + hidden_states * weights.masked_fill(~is_identity, 0.0).sum(-1, keepdim=True)

    return forward
