"""What a program stores and keeps: its weights and states, as every stage after capture knows them."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class StateSpec:
    """A mutable state that the session allocates; see `State` in schema.fbs."""

    name: str  # module path of the layer that owns it
    kind: str  # "kv_cache" or "recurrent"
    num_heads: int = 0  # key/value heads
    head_dim: int = 0
    value_head_dim: int = 0
    window: int = 0  # 0: every position is kept
    num_sink_positions: int = 0
    shape: tuple[int, ...] = ()  # recurrent only


@dataclass(frozen=True)
class WeightSpec:
    """How one stored weight is made from the checkpoint.

    `sources` are names in the module's state dict, concatenated along dimension 0 after `transpose` was applied to
    each; for a constant of the graph there is one source, a key of `Methods.constants`.
    """

    sources: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: torch.dtype  # of the stored elements; ignored where bits != 0
    bits: int = 0  # 0: dense; 1 to 8: tiles (docs/file-format.md)
    group_size: int = 0
    per_channel: bool = False  # one scale a row: every multiplier is 1
    signed: bool = True  # multipliers may be negative
    # "int8": consumers quantise their input per token; "rotated_int8": they rotate it first, and rows are rotated too
    activations: str = "float"
    transpose: bool = False  # GPT-2's Conv1D stores [in, out]

    @property
    def is_rotated(self) -> bool:
        return self.activations == "rotated_int8"

    @property
    def name(self) -> str:
        return "+".join(self.sources)
