"""JetMoE sorts tokens by experts. Queries and outputs of its attention have experts too, which are one matrix here."""

from __future__ import annotations

import torch
from torch import nn


def patch(model, context) -> None:
    for module in model.modules():
        if not hasattr(module, "router") or not hasattr(module, "output_linear"):
            continue
        if hasattr(module, "reduce"):
            module.map, module.reduce = _map(module), _reduce(module)
        else:
            module.forward = _forward(module)


def _route(module: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """x: [N, D]. Returns: the chosen experts and their weights, [N, K]"""
    scores, chosen = module.router.layer(x).topk(module.router.top_k, dim=1)
    return chosen, scores.softmax(dim=1)


def _forward(module: nn.Module):
    def forward(layer_input):
        x = layer_input.reshape(-1, module.input_size)
        up, down = module.input_linear.weight, module.output_linear.weight
        return (
            torch.ops.mote.moe_experts(x, *_route(module, x), up, down, function="silu").view(layer_input.shape)
            + module.bias
        )

    return forward


def _map(module: nn.Module):
    def map_(layer_input):
        x = layer_input.reshape(-1, module.input_size)
        chosen, weights = _route(module, x)
        every = nn.functional.linear(x, module.input_linear.weight.flatten(0, 1))
        every = every.unflatten(1, (module.num_experts, module.hidden_size))
        rows = every.gather(1, chosen.unsqueeze(-1).expand(-1, -1, module.hidden_size))
        return rows.unsqueeze(0), None, (chosen, weights)

    return map_


def _reduce(module: nn.Module):
    def reduce(layer_input, routing):
        chosen, weights = routing
        rows = layer_input.squeeze(0) * weights.unsqueeze(-1)  # [N, K, hidden_size]
        every = torch.zeros_like(rows[:, :1]).expand(-1, module.num_experts, -1)
        every = every.scatter(1, chosen.unsqueeze(-1).expand_as(rows), rows)
        return (
            torch.matmul(every.flatten(1), module.output_linear.weight.transpose(1, 2).flatten(0, 1)).unsqueeze(0)
            + module.bias
        )

    return reduce
