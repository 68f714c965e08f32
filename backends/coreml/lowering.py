"""What makes and runs a Core ML package."""

from __future__ import annotations

from pathlib import Path

from ..tensor_ops.lowering import TensorOpsBackend
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
    builder, emitter, weights = PackageBuilder, CoremlEmitter, CoremlWeights

    def check_installed(self) -> None:
        check_installed()

    def interpreter(self, folder: Path) -> Interpreter:
        return Interpreter(folder)
