"""Recognises the gate of transformers' expert modules and calls `mote::moe_experts` for them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import Tensor, nn

from llm_export.capture import ops
from llm_export.capture.guards import place_of
from llm_export.errors import UnsupportedError

ATTRIBUTE = "_mote_gate"


def prepare(model: nn.Module, model_type: str) -> None:
    """Finds out, before the trace, which gate each expert module computes.

    Errors: UnsupportedError if a gate is none that `mote::moe_experts` offers.
    """
    for module in model.modules():
        if hasattr(module, "_apply_gate") and hasattr(module, "has_gate"):
            setattr(module, ATTRIBUTE, _recognise(module, model_type))


@torch.no_grad()
def _recognise(module: nn.Module, model_type: str) -> dict:
    """Compares the module's gate with every one that the op offers, on numbers that reach all their branches."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4, 64, generator=generator) * 12
    gate = module._apply_gate if module.has_gate else module.act_fn
    expected = gate(x)
    for attributes in _possible_gates(module):
        found = ops.gate_experts(x, **attributes)
        if found.shape == expected.shape and torch.allclose(found, expected, rtol=1e-5, atol=1e-5):
            return attributes
    raise _no_gate(gate, type(module).__name__, model_type)


@torch.no_grad()
def function_of(activation: Callable[[Tensor], Tensor], model_type: str) -> str:
    """Returns which of `ops.GATES` an activation of experts computes. Errors: UnsupportedError if none"""
    x = torch.randn(4, 64, generator=torch.Generator().manual_seed(0)) * 12
    for name, function in ops.GATES.items():
        if torch.allclose(function(x), activation(x), rtol=1e-5, atol=1e-5):
            return name
    raise _no_gate(activation, type(activation).__name__, model_type)


def _no_gate(gate: Callable, owner: str, model_type: str) -> UnsupportedError:
    return UnsupportedError(
        model_type,
        f"the activation of its experts ({owner} at {place_of(gate)}) is none that mote::moe_experts offers",
        "Add it to llm_export/capture/ops.py and to the kernel",
    )


def _possible_gates(module: nn.Module):
    limits = {float(getattr(module, name)) for name in ("limit", "swiglu_limit") if getattr(module, name, None)} | {0.0}
    alphas = {float(getattr(module, name)) for name in ("alpha", "swiglu_alpha") if getattr(module, name, None)} | {0.0}
    caps = [getattr(getattr(module, "act_fn", None), name, None) for name in ("gate_softcap", "up_softcap")]
    softcaps = [float(getattr(cap, "softcap", 0.0)) for cap in caps]
    if module.has_gate and any(softcaps):
        yield {
            "function": "silu", "layout": "concatenated", "limit": 0.0, "alpha": 0.0, "gate_softcap": softcaps[0],
            "up_softcap": softcaps[1],
        }  # fmt: skip
    layouts = ("concatenated", "interleaved") if module.has_gate else ("single",)
    for function, layout, limit, alpha in itertools.product(ops.GATES, layouts, limits, alphas):
        yield {"function": function, "layout": layout, "limit": limit, "alpha": alpha}


def call(module: nn.Module, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
    """The experts function that transformers calls; see transformers.integrations.moe.

    hidden_states: [N, D]; top_k_index: int64 [N, K]; top_k_weights: [N, K]. Returns: [N, D]
    """
    up, down = (module.gate_up_proj if module.has_gate else module.up_proj), module.down_proj
    if module.is_transposed:
        up, down = up.transpose(1, 2), down.transpose(1, 2)
    up_bias = down_bias = None
    if module.has_bias:
        up_bias = module.gate_up_proj_bias if module.has_gate else module.up_proj_bias
        down_bias = module.down_proj_bias
    return torch.ops.mote.moe_experts(
        hidden_states, top_k_index, top_k_weights.to(hidden_states.dtype), up, down, up_bias, down_bias,
        **getattr(module, ATTRIBUTE),
    )  # fmt: skip
