"""Inkling's biases by distance follow from queries. It spreads them over keys, which `mote::attention` does itself."""

from __future__ import annotations


def patch(model, context) -> None:
    for module in model.modules():
        if hasattr(module, "rel_extent") and not hasattr(module, "rel_logits_proj"):
            module.forward = _forward(module)


def _forward(module):
    def forward(relative_states, query_positions, key_positions):  # [1, T, H, D]; returns [1, H, T, extent]
        return (relative_states @ module.proj).transpose(1, 2)

    return forward
