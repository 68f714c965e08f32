"""Graphs over shared states and weights: what goes from capture to quantize, passes and instructions."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch.export import ExportedProgram

from llm_export.program.instructions import EMBED
from llm_export.program.specs import StateSpec, WeightSpec


@dataclass(frozen=True)
class Methods:
    """What the results of these stages have in common; a function that asks for it takes any of them.

    `programs` maps a method name to a graph with inputs `input_ids` and `position_ids`, int64 [1, T], and one output,
    logits float32 [1, T or 1, vocab_size], or hidden states float32 [1, T, dimensions] of `embed`. Where there is
    `mtp`, methods with logits have what the head reads of every position as a second output, float32 [1, T, width], its
    hidden states; `mtp` has them as its third input and gives its own, which `mtp_2` has and so on. Every parameter and
    buffer that a graph reads has an entry in `weights` under its fully qualified name; tied names share one entry.
    """

    programs: dict[str, ExportedProgram]
    states: list[StateSpec]
    weights: dict[str, WeightSpec]
    constants: dict[str, torch.Tensor] = field(default_factory=dict)  # real values of buffers and lifted tensors
    max_tokens: int = 2**31 - 1  # upper bound of T in one call
    model_type: str = ""  # for errors

    @property
    def vocab_size(self) -> int:
        """Columns of the logits; without these, rows of the largest table that ids are looked up in."""
        if "verify" in self.programs:
            output = self.programs["verify"].graph.output_node()
            return int(output.args[0][0].meta["val"].shape[-1])
        tables = self.programs[EMBED].graph.find_nodes(op="call_function", target=torch.ops.aten.embedding.default)
        return max(int(node.args[0].meta["val"].shape[0]) for node in tables)


@dataclass(frozen=True)
class Captured(Methods):
    """What `capture` returns: `verify`, `embed` and the graphs of heads, and weights as the checkpoint stores them."""
