"""Instructions to functions of a Core ML package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llm_export.partition.backend import Subgraph

from ..tensor_ops.function import Function
from ..tensor_ops.lowering import TensorOpsBackend, handles_of, named
from ..tensor_ops.reference import Asset
from ..tensor_ops.refusals import Refusal
from ..tensor_ops.registry import OPS
from .emitter import CoremlEmitter
from .interpreter import Interpreter
from .vendor import MODEL, WEIGHTS, PackageBuilder, check_installed
from .weights import CoremlWeights

__all__ = ["OPS", "CoremlBackend", "Refusal"]

ASSET = Asset("Core ML", ".mlpackage", (MODEL, WEIGHTS))


class CoremlBackend(TensorOpsBackend):
    """Runs whole decoders by Core ML (iOS 18, macOS 15 and later)."""

    name = "coreml"
    asset_suffix = ASSET.suffix
    asset = ASSET
    emitter, weights = CoremlEmitter, CoremlWeights

    def check_installed(self) -> None:
        check_installed()

    def write(
        self, parts: Sequence[Subgraph], weights: CoremlWeights, folder: Path, context_length: int
    ) -> dict[str, Function]:
        builder = PackageBuilder()
        emitter = CoremlEmitter(builder)
        functions = named([Function(part, emitter, weights, context_length) for part in parts])
        for name, function in functions.items():
            _add(builder, name, function)
        builder.save(folder)
        return functions

    def interpreter(self, folder: Path) -> Interpreter:
        return Interpreter(folder)


def _add(builder: PackageBuilder, name: str, function: Function) -> None:
    def body(handles: list[Any]) -> dict[str, Any]:
        return handles_of(function, handles)

    builder.function(
        name,
        [(port.name, port.shape, port.dtype) for port in function.inputs()],
        [(port.name, port.shape, port.dtype) for port in function.state_inputs()],
        body,
    )
