"""Graphs over shared states and weights: what goes from capture to quantize, passes and instructions."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch.export import ExportedProgram

from llm_export.program.specs import StateSpec, WeightSpec


@dataclass(frozen=True)
class Methods:
    """What the results of these stages have in common; a function that asks for it takes any of them.

    `programs` maps a method name to a graph with inputs `input_ids` and `position_ids`, int64 [1, T], and one output,
    logits float32 [1, T or 1, vocab_size]. Every parameter and buffer that a graph reads has an entry in `weights`
    under its fully qualified name; tied names share one entry.
    """

    programs: dict[str, ExportedProgram]
    states: list[StateSpec]
    weights: dict[str, WeightSpec]
    constants: dict[str, torch.Tensor] = field(default_factory=dict)  # real values of buffers and lifted tensors
    max_tokens: int = 2**31 - 1  # upper bound of T in one call
    model_type: str = ""  # for errors

    @property
    def vocab_size(self) -> int:
        """Columns of the logits."""
        output = next(iter(self.programs["verify"].graph.find_nodes(op="output")))
        return int(output.args[0][0].meta["val"].shape[-1])


@dataclass(frozen=True)
class Captured(Methods):
    """What `capture` returns: the graph `verify`, and weights as the checkpoint stores them."""
