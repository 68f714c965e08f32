"""JetMoE sorts tokens by experts. Queries and outputs of its attention have experts too, one matrix each.

Each head of keys is seen by one query of each expert that a token chose. The class repeats keys and values for them;
here such queries are neighbours and keys are stored once.
"""

from __future__ import annotations

import torch
from torch import nn
from transformers.models.jetmoe.modeling_jetmoe import apply_rotary_pos_emb

from llm_export.capture import experts


def patch(model, context) -> None:
    for module in model.modules():
        if hasattr(module, "kv_proj") and hasattr(module, "experts"):
            module.forward = _attend(module, context)
        if not hasattr(module, "router") or not hasattr(module, "output_linear"):
            continue
        if hasattr(module, "reduce"):
            module.map, module.reduce = _map(module), _reduce(module)
        else:
            module.forward = _forward(module, experts.function_of(module.activation, context.model_type))


def _route(module: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """x: [N, D]. Returns: the chosen experts and their weights, [N, K]"""
    scores, chosen = module.router.layer(x).topk(module.router.top_k, dim=1)
    return chosen, scores.softmax(dim=1)


def _forward(module: nn.Module, function: str):
    def forward(layer_input):
        x = layer_input.reshape(-1, module.input_size)
        up, down = module.input_linear.weight, module.output_linear.weight
        y = torch.ops.mote.moe_experts(x, *_route(module, x), up, down, function=function)
        return y.view(layer_input.shape) + module.bias

    return forward


def _attend(module: nn.Module, context):
    def forward(hidden_states, position_embeddings, **kwargs):
        rows, _, routing = module.experts.map(hidden_states)
        # [1, T, K, heads, D] to heads of keys with their K queries
        queries = rows.unflatten(-1, (-1, module.head_dim)).transpose(2, 3).flatten(2, 3).transpose(1, 2)
        both = module.kv_proj(hidden_states).unflatten(-1, (2, -1, module.head_dim))
        keys, values = (each.transpose(1, 2) for each in both.unbind(2))
        queries, keys = apply_rotary_pos_emb(queries, keys, *position_embeddings)
        mixed = context.attention(module, queries, keys, values, scale=module.scaling)  # [1, T, heads K, D]
        mixed = mixed.unflatten(2, (-1, module.top_k)).transpose(2, 3)
        return module.experts.reduce(mixed, routing), None, None

    return forward


def _map(module: nn.Module):
    def map_(layer_input):
        x = layer_input.reshape(-1, module.input_size)
        chosen, weights = _route(module, x)
        rows = torch.ops.mote.expert_linear(x, chosen, module.input_linear.weight)  # [N, K, hidden_size]
        return rows.unsqueeze(0), None, (chosen, weights)

    return map_


def _reduce(module: nn.Module):
    def reduce(layer_input, routing):
        chosen, weights = routing
        rows = layer_input.reshape(-1, module.hidden_size)  # each choice is a token of its own
        outputs = torch.ops.mote.expert_linear(rows, chosen.reshape(-1, 1), module.output_linear.weight)
        outputs = outputs.view(-1, module.top_k, module.input_size) * weights.unsqueeze(-1)
        return (outputs.sum(1) + module.bias).unsqueeze(0)

    return reduce
