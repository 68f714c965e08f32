"""Inkling 2 has biases by distance as Inkling, convolutions with taps of each token, and mixes states of its layers."""

from __future__ import annotations

import math

import torch

from llm_export.capture.architectures import inkling_text
from llm_export.capture.recurrences import shifted


def patch(model, context) -> None:
    inkling_text.patch(model, context)
    for module in model.modules():
        if hasattr(module, "static_weight"):
            module.forward = _dynamic_convolution(module, context)
        elif hasattr(module, "query") and hasattr(module, "norm"):
            module.forward = _mixture(module)


def _dynamic_convolution(module, context):
    def forward(hidden_states, dynamic_input, past_key_values=None, conv_mask=None, **kwargs):
        size, tap, sums = module.conv_kernel_size, hidden_states, hidden_states
        shape = (*hidden_states.shape[:-1], module.num_heads, -1)
        dynamic = module.weight_proj(dynamic_input).unflatten(-1, (module.num_heads, 1, size))
        static = module.static_weight.unflatten(1, (module.num_heads, -1))
        for distance in range(size):
            weight = static[distance] + dynamic[..., distance]
            sums = sums + (tap.view(shape) * weight).flatten(2)
            tap = shifted(context, module, tap) if distance + 1 < size else tap
        return sums / math.sqrt(2 * size + 1)

    return forward


def _mixture(module):
    """Attention of learned queries over the states of blocks of layers, each token on its own."""

    def forward(block_states, partial_block_states):
        states = module.norm(torch.cat([block_states, partial_block_states.unsqueeze(-2)], dim=-2))
        queries = module.query.view(-1, states.shape[-1]) * states.shape[-1] ** -0.5
        weights = (states.unsqueeze(-2) * queries).sum(-1).softmax(2)  # [1, T, S, Q]
        return (weights.unsqueeze(-1) * states.unsqueeze(-2)).sum(2).unbind(-2)

    return forward
