"""What makes and runs a Core AI asset."""

from __future__ import annotations

from pathlib import Path

from ..tensor_ops.lowering import TensorOpsBackend
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
    builder, emitter, weights = AssetBuilder, CoreaiEmitter, CoreaiWeights

    def check_installed(self) -> None:
        check_installed()

    def interpreter(self, folder: Path) -> Interpreter:
        return Interpreter(folder)
