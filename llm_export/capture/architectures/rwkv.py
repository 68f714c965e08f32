"""RWKV's attention is a quotient of two sums over the past with a decay for each channel, and loops over tokens.

transformers divides both sums by the largest exponential so far. Here they are as they are, with exponents up to 80.
"""

from __future__ import annotations

import torch

from llm_export.capture.recurrences import shifted

LIMIT = 80.0  # e^80 and sums of it are float32


def patch(model, context) -> None:
    every = model.config.rescale_every
    backbone = getattr(model, model.base_model_prefix, model)
    backbone.layers_are_rescaled = True  # by the factors below, because weights have no values here
    for index, block in enumerate(backbone.blocks):
        factor = 2.0 ** -(index // every) if every > 0 else 1.0
        block.attention.forward = _attention(block.attention, context, factor)
        block.feed_forward.forward = _feed_forward(block.feed_forward, context, factor)


def _mixed(module, context, x, names):
    before = shifted(context, module, x)
    for name in names:
        share = getattr(module, f"time_mix_{name}")
        yield x * share + before * (1 - share)


def _attention(module, context, factor):
    def forward(hidden, state=None, use_cache=False):
        key, value, receptance = _mixed(module, context, hidden, ("key", "value", "receptance"))
        key, value = module.key(key).clamp(-LIMIT, LIMIT), module.value(value)
        # Heads are channels; their values are the summands of the numerator and of the denominator.
        both = torch.stack((value, torch.ones_like(value)), dim=-1)  # [1, T, C, 2]
        added = both * key.exp().unsqueeze(-1)
        past = shifted(context, module, added.flatten(2)).view(added.shape)
        once = torch.ones_like(key[..., :1]).unsqueeze(-1)
        decay = torch.exp(-torch.exp(module.time_decay)).expand(key.shape)
        sums = context.linear_attention(module, once, once, past, decay)
        sums = sums + both * torch.exp((key + module.time_first).clamp(-LIMIT, LIMIT)).unsqueeze(-1)
        gate = torch.sigmoid(module.receptance(receptance))
        return module.output(gate * sums[..., 0] / sums[..., 1]) * factor, state

    return forward


def _feed_forward(module, context, factor):
    def forward(hidden, state=None):
        key, receptance = _mixed(module, context, hidden, ("key", "receptance"))
        value = module.value(torch.square(torch.relu(module.key(key))))
        return torch.sigmoid(module.receptance(receptance)) * value * factor, state

    return forward
