"""Llama 4 runs every expert on every token, with an input of 0 where the router did not choose the expert."""

from __future__ import annotations

import torch
from torch import nn

TRANSPOSED_EXPERTS = True  # their stacks lie [E, in_features, out_features]


def patch(model, context) -> None:
    for module in model.modules():
        if hasattr(module, "router") and hasattr(module, "shared_expert"):
            module.forward = _forward(module)


def _forward(module: nn.Module):
    def forward(hidden_states):
        x = hidden_states.reshape(-1, module.hidden_dim)
        logits = nn.functional.linear(x, module.router.weight)
        scores, chosen = torch.topk(logits, module.top_k, dim=1)
        # The scores multiply what goes into an expert, so each choice is a token of its own.
        inputs = (x.unsqueeze(1) * scores.sigmoid().unsqueeze(-1)).reshape(-1, module.hidden_dim)
        up, down = (stack.transpose(1, 2) for stack in (module.experts.gate_up_proj, module.experts.down_proj))
        routed = torch.ops.mote.moe_experts(
            inputs, chosen.reshape(-1, 1), torch.ones_like(scores).reshape(-1, 1), up, down, function="silu"
        )
        return module.shared_expert(x) + routed.view(-1, module.top_k, module.hidden_dim).sum(1), logits

    return forward
