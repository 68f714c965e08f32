"""DBRX loops over its experts, whose matrices lie one below the other: here they are one gated layer, of which a router
closes most of the features."""

from __future__ import annotations

import torch
from torch import nn


def patch(model, context) -> None:
    for module in model.modules():
        if hasattr(module, "mlp") and hasattr(module.mlp, "v1"):
            module.forward = _forward(module)


def _forward(module: nn.Module):
    def forward(hidden_states, top_k_index, top_k_weights):
        mlp, x = module.mlp, hidden_states.reshape(-1, module.hidden_size)
        gates = torch.zeros_like(x[:, :1]).expand(-1, module.num_experts).scatter(1, top_k_index, top_k_weights)
        shape = (module.num_experts, -1, module.hidden_size)
        w1, v1, w2 = (weight.view(shape).flatten(0, 1) for weight in (mlp.w1, mlp.v1, mlp.w2))
        hidden = mlp.activation_fn(nn.functional.linear(x, w1)) * nn.functional.linear(x, v1)
        chosen = hidden.unflatten(1, (module.num_experts, -1)) * gates.unsqueeze(-1)
        return torch.matmul(chosen.flatten(1), w2).view(hidden_states.shape)

    return forward
