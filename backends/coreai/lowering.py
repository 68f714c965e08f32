"""Instructions to functions of a Core AI asset."""

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
from .emitter import CoreaiEmitter
from .vendor import PROGRAM, AssetBuilder, Interpreter, check_installed
from .weights import CoreaiWeights

__all__ = ["OPS", "CoreaiBackend", "Refusal"]

ASSET = Asset("Core AI", ".aimodel", (PROGRAM,))


class CoreaiBackend(TensorOpsBackend):
    """Runs whole decoders on Apple's accelerators (iOS and macOS 27)."""

    name = "coreai"
    asset_suffix = ASSET.suffix
    asset = ASSET
    emitter, weights = CoreaiEmitter, CoreaiWeights

    def check_installed(self) -> None:
        check_installed()

    def write(
        self, parts: Sequence[Subgraph], weights: CoreaiWeights, folder: Path, context_length: int
    ) -> dict[str, Function]:
        builder = AssetBuilder()
        emitter = CoreaiEmitter(builder)
        functions = named([Function(part, emitter, weights, context_length) for part in parts])
        with builder.building():
            for name, function in functions.items():
                _add(builder, name, function)
        builder.save(folder)
        return functions

    def interpreter(self, folder: Path) -> Interpreter:
        return Interpreter(folder)


def _add(builder: AssetBuilder, name: str, function: Function) -> None:
    def body(handles: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        outputs = handles_of(function, handles)
        return outputs, {state: tensor.handle for state, tensor in function.states.items()}

    builder.function(
        name,
        [(port.name, port.shape, port.dtype) for port in function.inputs()],
        [(port.name, port.shape, port.dtype) for port in function.state_inputs()],
        body,
    )
