"""Makes rotary embeddings that change with the length of the sequence pure functions of the positions.

transformers recomputes `inv_freq` of the types `dynamic` and `longrope` in place, from the largest position of a call.
A graph cannot assign to its module, so the frequencies become part of the computation.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS


def make_pure(model: nn.Module) -> None:
    """Replaces the forward of every rotary module whose frequencies depend on the positions."""
    for module in model.modules():
        types = getattr(module, "rope_type", None)
        if types is None or not hasattr(type(module), "forward"):
            continue
        names = types if isinstance(types, dict) else {None: types}
        if any(_changes(kind) for kind in names.values()):
            for layer_type, kind in names.items():
                if kind == "longrope":
                    _keep_both(module, layer_type)
            module.forward = _pure_forward(module, names)


def _changes(rope_type: object) -> bool:
    return isinstance(rope_type, str) and ("dynamic" in rope_type or rope_type == "longrope")


def _prefix(layer_type: str | None) -> str:
    return "" if layer_type is None else f"{layer_type}_"


def _parameters(module: nn.Module, layer_type: str | None) -> dict:
    parameters = module.config.rope_parameters
    return parameters if layer_type is None else parameters[layer_type]


def _keep_both(module: nn.Module, layer_type: str | None) -> None:
    """Registers the long and the short frequencies as buffers of their own."""
    original = _parameters(module, layer_type)["original_max_position_embeddings"]
    kwargs = {} if layer_type is None else {"layer_type": layer_type}
    long, _ = ROPE_INIT_FUNCTIONS["longrope"](module.config, torch.device("cpu"), seq_len=original + 1, **kwargs)
    prefix = _prefix(layer_type)
    short = getattr(module, f"{prefix}original_inv_freq").clone()
    module.register_buffer(f"{prefix}mote_long_inv_freq", long, persistent=False)
    module.register_buffer(f"{prefix}mote_short_inv_freq", short, persistent=False)


def _frequencies(module: nn.Module, rope_type: str, layer_type: str | None, position_ids: Tensor) -> Tensor:
    length = position_ids.max() + 1
    prefix = _prefix(layer_type)
    if rope_type == "longrope":
        is_long = length > _parameters(module, layer_type)["original_max_position_embeddings"]
        long = getattr(module, f"{prefix}mote_long_inv_freq")
        return torch.where(is_long, long, getattr(module, f"{prefix}mote_short_inv_freq"))
    kwargs = {} if layer_type is None else {"layer_type": layer_type}
    return ROPE_INIT_FUNCTIONS[rope_type](module.config, torch.device("cpu"), seq_len=length, **kwargs)[0]


def _pure_forward(module: nn.Module, types: dict):
    undecorated = type(module).forward
    while hasattr(undecorated, "__wrapped__"):
        undecorated = undecorated.__wrapped__

    def forward(x, position_ids, layer_type=None):
        arguments = () if layer_type is None else (layer_type,)
        if not _changes(types.get(layer_type)):
            return undecorated(module, x, position_ids, *arguments)
        name = f"{_prefix(layer_type)}inv_freq"
        kept = module._buffers[name]
        module._buffers[name] = _frequencies(module, types[layer_type], layer_type, position_ids)
        try:
            return undecorated(module, x, position_ids, *arguments)
        finally:
            module._buffers[name] = kept

    return forward
