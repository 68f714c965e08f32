"""Runs captured programs in eager PyTorch on the reference ops."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from llm_export.capture.methods import Methods
from llm_export.capture.ops import ReferenceState
from llm_export.program.specs import WeightSpec
from llm_export.quantize.encode import applied


def materialize(spec: WeightSpec, methods: Methods, read: Callable[[str], Tensor]) -> Tensor:
    """Returns the float32 (or integer) tensor that `spec` describes, dense. read: module state-dict name -> tensor."""
    parts = [methods.constants[name] if name in methods.constants else read(name) for name in spec.sources]
    parts = [part[: spec.shape[0]] if spec.takes_first else part for part in parts]
    parts = [part.transpose(-1, -2) if spec.transpose else part for part in parts]
    parts = [applied(spec, index, part) for index, part in enumerate(parts)]
    value = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2 if len(spec.shape) == 3 else 0)
    return value.float() if value.is_floating_point() else value


class EagerProgram:
    """A sequence in progress on the reference ops: `run(method, input_ids)` gives logits and advances the position.

    read: module state-dict name -> tensor, for instance `checkpoint.weights.read`. Holds all weights in float32.
    """

    def __init__(self, methods: Methods, read: Callable[[str], Tensor]):
        self.methods = methods
        self.values = {name: materialize(spec, methods, read) for name, spec in methods.weights.items()}
        self.state = ReferenceState()
        self.position = 0

    def rewind(self, position: int) -> None:
        """Forgets every position from `position` on (KV caches only)."""
        self.position = position

    @torch.no_grad()
    def run(self, method: str, input_ids: Tensor) -> Tensor:
        """input_ids: int64 [1, T]. Returns: float32 [1, T or 1, vocab_size]"""
        positions = torch.arange(self.position, self.position + input_ids.shape[1])[None]
        program = self.methods.programs[method]
        with self.state:
            output = program.graph_module(*self._arguments(program, input_ids, positions))
        self.position += input_ids.shape[1]
        return output[0]

    def _arguments(self, program: ExportedProgram, input_ids: Tensor, positions: Tensor) -> list[Tensor | None]:
        inputs = iter((input_ids, positions))
        return [
            next(inputs) if spec.kind == InputKind.USER_INPUT else self.values.get(spec.target)
            for spec in program.graph_signature.input_specs
        ]
