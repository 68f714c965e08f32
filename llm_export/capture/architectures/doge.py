"""Doge adds a number to the scores of each key, which follows from its value, and beyond a limit keeps the largest."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F
from transformers.models.doge.modeling_doge import apply_rotary_pos_emb

from llm_export.capture.guards import place_of
from llm_export.errors import UnsupportedError


def patch(model, context) -> None:
    for module in model.modules():
        if hasattr(module, "router_gate"):
            what = f"its router ({place_of(module)}) mixes the scores of different tokens of a call"
            raise UnsupportedError(context.model_type, what)
        if hasattr(module, "keep_window_size") and hasattr(module, "dt_proj"):
            module.forward = _forward(module, context)


def _forward(module: nn.Module, context):
    def forward(hidden_states, position_embeddings, *args, **kwargs):
        shape = (*hidden_states.shape[:-1], -1, module.head_dim)
        q = module.q_norm(module.q_proj(hidden_states).view(shape)).transpose(1, 2)
        k = module.k_norm(module.k_proj(hidden_states).view(shape)).transpose(1, 2)
        values = module.v_proj(hidden_states)
        q, k = apply_rotary_pos_emb(q, k, *position_embeddings)
        order = (module.A * F.softplus(module.dt_proj(values))).transpose(1, 2).unsqueeze(-1)  # [1, G, T, 1]
        bias, rest, chosen = order.exp(), torch.zeros_like(order), None  # rest: GPUs cache pairs of elements
        if module.keep_window_size < module.config.max_position_embeddings:
            keys = torch.cat((order, rest), dim=-1)
            signs = torch.tensor([1.0, -1.0])  # x is relu(x) - relu(-x)
            queries = torch.ones_like(keys).unsqueeze(2) * signs.view(1, 1, 2, 1, 1)
            weights = torch.ones_like(values[..., :1]) * signs.repeat(order.shape[1])
            chosen = context.indexer(module, queries.flatten(1, 2), keys, weights, topk=module.keep_window_size)
        # One more element of keys, which queries multiply by 1, is the bias.
        q = torch.cat((q, torch.ones_like(q[..., :2])), dim=-1)
        k = torch.cat((k, bias / module.scaling, rest), dim=-1)
        v = values.view(shape).transpose(1, 2)
        output = context.attention(module, q, k, v, scale=module.scaling, chosen=chosen)
        return module.o_proj(output.flatten(2)), None

    return forward
