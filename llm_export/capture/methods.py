"""The captured program: graphs over shared states and weights."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch.export import ExportedProgram

from llm_export.program.specs import StateSpec, WeightSpec


@dataclass
class Methods:
    """The captured program: graphs over shared states and weights.

    `programs` maps a method name to a graph with inputs `input_ids` and `position_ids`, int64 [1, T], and one output,
    logits float32 [1, T or 1, vocab_size]. Every parameter and buffer that a graph reads has an entry in `weights`
    under its fully qualified name; tied names share one entry.
    """

    programs: dict[str, ExportedProgram]
    states: list[StateSpec]
    weights: dict[str, WeightSpec]
    constants: dict[str, torch.Tensor] = field(default_factory=dict)  # real values of buffers and lifted tensors
    max_tokens: int = 2**31 - 1  # upper bound of T in one call
