"""Imports torchao without the notes that it logs about GPU libraries that a CPU build cannot load."""

from __future__ import annotations

from llm_export.quiet import quiet_imports

with quiet_imports():
    from torchao.quantization import IntxUnpackedToInt8Tensor, IntxWeightOnlyConfig, PerAxis, PerGroup, quantize_
    from torchao.quantization.quant_api import Int8DynamicActivationIntxWeightConfig
    from torchao.quantization.quant_primitives import (
        MappingType,
        choose_qparams_affine,
        dequantize_affine,
        quantize_affine,
    )

mapping_symmetric = MappingType.SYMMETRIC

__all__ = [
    "Int8DynamicActivationIntxWeightConfig",
    "IntxUnpackedToInt8Tensor",
    "IntxWeightOnlyConfig",
    "PerAxis",
    "PerGroup",
    "choose_qparams_affine",
    "dequantize_affine",
    "mapping_symmetric",
    "quantize_",
    "quantize_affine",
]
