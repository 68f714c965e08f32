"""Zaya mixes queries and keys by convolutions over tokens, and delays half of each value by one token."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from llm_export.capture.recurrences import shifted


def patch(model, context) -> None:
    for module in model.modules():
        if hasattr(module, "conv_qk_grouped"):
            module.forward = _forward(module, context)


def _depthwise(context, conv: nn.Conv1d, x: Tensor) -> Tensor:
    return context.short_conv(conv, x, conv.weight.squeeze(1), conv.bias)


def _grouped(context, conv: nn.Conv1d, x: Tensor, before: Tensor) -> Tensor:
    """A convolution of groups of channels. x: [1, T, C]; before: [C], what x is before the first token."""
    taps = [x]
    for _ in range(conv.kernel_size[0] - 1):
        taps.insert(0, shifted(context, conv, taps[0] - before) + before)
    stacked = torch.stack([tap.unflatten(2, (conv.groups, -1)) for tap in taps], dim=-1)  # [1, T, G, D, L]
    weight = conv.weight.unflatten(0, (conv.groups, -1)).flatten(2)  # [G, D, D L]
    y = torch.bmm(stacked.flatten(3).squeeze(0).transpose(0, 1), weight.transpose(1, 2))
    return y.transpose(0, 1).flatten(1).unsqueeze(0) + conv.bias


def _forward(module: nn.Module, context):
    def forward(hidden_states, past_key_values=None, conv_mask=None):
        shape = (*hidden_states.shape[:-1], -1, module.head_dim)
        projected = [module.q_proj(hidden_states), module.k_proj(hidden_states)]
        queries, keys = (x.view(shape) for x in projected)
        query_residual = (queries + keys.repeat_interleave(module.num_key_value_groups, dim=2)) * 0.5
        key_residual = query_residual.unflatten(2, (-1, module.num_key_value_groups)).mean(dim=3)
        mixed = _depthwise(context, module.conv_qk_depthwise, torch.cat(projected, dim=-1))
        mixed = _grouped(context, module.conv_qk_grouped, mixed, module.conv_qk_depthwise.bias)
        sizes = [x.shape[-1] for x in projected]
        query, key = (x.view(shape) for x in mixed.split(sizes, dim=-1))
        delayed = module.v_proj_delayed(shifted(context, module, hidden_states))
        value = torch.cat((module.v_proj_current(hidden_states), delayed), dim=-1).view(shape)
        return query + query_residual, key + key_residual, value

    return forward
