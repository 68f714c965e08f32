"""Imports torchao without the notes that it logs about GPU libraries that a CPU build cannot load."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def quiet_imports() -> Iterator[None]:
    """Inside, nothing below an error is logged."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(disabled)


with quiet_imports():
    from torchao.quantization import IntxUnpackedToInt8Tensor, IntxWeightOnlyConfig, PerAxis, PerGroup, quantize_
    from torchao.quantization.quant_api import Int8DynamicActivationIntxWeightConfig
    from torchao.quantization.quant_primitives import MappingType, choose_qparams_affine, quantize_affine

mapping_symmetric = MappingType.SYMMETRIC

__all__ = [
    "Int8DynamicActivationIntxWeightConfig",
    "IntxUnpackedToInt8Tensor",
    "IntxWeightOnlyConfig",
    "PerAxis",
    "PerGroup",
    "choose_qparams_affine",
    "mapping_symmetric",
    "quantize_",
    "quantize_affine",
    "quiet_imports",
]
