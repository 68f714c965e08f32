"""What makes and runs a Core AI asset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..tensor_ops.emitter import FLOAT
from ..tensor_ops.lowering import CONTEXT_LENGTH, TOKEN_COUNTS, TensorOpsBackend
from ..tensor_ops.reference import Asset
from ..tensor_ops.refusals import Refusal
from ..tensor_ops.registry import OPS
from .ane import AneEmitter, AneWeights
from .emitter import CoreaiEmitter
from .vendor import PROGRAM, AssetBuilder, Interpreter, check_installed
from .weights import CoreaiWeights

__all__ = ["OPS", "CoreaiBackend", "Refusal"]

ANE = "ane"
ASSET = Asset("Core AI", ".aimodel", (PROGRAM,))


class CoreaiBackend(TensorOpsBackend):
    """Runs whole decoders on Apple's accelerators (iOS and macOS 27).

    profile: a dtype, or "ane" for the Neural Engine
    """

    name = "coreai"
    asset_suffix = ASSET.suffix
    asset = ASSET
    builder, emitter, weights = AssetBuilder, CoreaiEmitter, CoreaiWeights
    profiles = (*TensorOpsBackend.profiles, ANE)

    def __init__(
        self,
        context_length: int = CONTEXT_LENGTH,
        token_counts: Sequence[int] = TOKEN_COUNTS,
        profile: str = FLOAT,
    ):
        super().__init__(context_length, token_counts, profile)
        if profile == ANE:
            self.emitter, self.weights, self.takes_groups = AneEmitter, AneWeights, False

    def check_installed(self) -> None:
        check_installed()

    def interpreter(self, folder: Path) -> Interpreter:
        return Interpreter(folder)
