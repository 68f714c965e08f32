"""RecurrentGemma's linear recurrence has a decay of its own for each channel, and is a loop over tokens."""

from __future__ import annotations

from torch import nn


def patch(model, context) -> None:
    for module in model.modules():
        if hasattr(module, "_rnn_scan"):
            module._rnn_scan = _scan(module, context)


def _scan(module: nn.Module, context):
    def scan(hidden_states, recurrent_gate, reset, recurrent_states):  # [1, T, C] each, reset [1, T, 1]
        once = hidden_states.new_ones(1, hidden_states.shape[1], 1, 1)
        decay = recurrent_gate * ~reset
        return context.linear_attention(module, once, once, hidden_states.unsqueeze(-1), decay).squeeze(-1), None

    return scan
