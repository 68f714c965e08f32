"""DBRX loops over its experts, whose matrices lie one below the other."""

from __future__ import annotations

import torch
from torch import nn

from llm_export.capture import experts


def patch(model, context) -> None:
    for module in model.modules():
        if hasattr(module, "mlp") and hasattr(module.mlp, "v1"):
            module.forward = _forward(module, experts.function_of(module.mlp.activation_fn, context.model_type))


def _forward(module: nn.Module, function: str):
    def forward(hidden_states, top_k_index, top_k_weights):
        mlp, x = module.mlp, hidden_states.reshape(-1, module.hidden_size)
        shape = (module.num_experts, -1, module.hidden_size)
        gate, up, down = (weight.view(shape) for weight in (mlp.w1, mlp.v1, mlp.w2))
        gate_up = torch.cat((gate, up), dim=1)
        y = torch.ops.mote.moe_experts(x, top_k_index, top_k_weights, gate_up, down.transpose(1, 2), function=function)
        return y.view(hidden_states.shape)

    return forward
