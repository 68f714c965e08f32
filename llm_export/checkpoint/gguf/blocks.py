"""Values of GGUF tensors: raw blocks as they are stored, or dequantized as the `gguf` package does it."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import torch
from torch import Tensor

from llm_export.checkpoint.gguf.reader import TYPES, StoredTensor
from llm_export.errors import ArgumentError, FileError

BLOCK_ELEMENTS = 1 << 17  # dequantized in one step, so that temporaries stay in the cache
DENSE = {
    "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64, "I8": torch.int8,
    "I16": torch.int16, "I32": torch.int32, "I64": torch.int64,
}  # fmt: skip
# The package does not dequantize these; the first two hold activations while a product is computed.
NOT_READ = ("Q8_1", "Q8_K", "Q1_0")
QUANTIZED = tuple(name for name, _, _ in TYPES.values() if name not in DENSE and name not in NOT_READ)


def check_type(tensor: StoredTensor) -> None:
    """Errors: FileError that names the type, if its values cannot be had"""
    if tensor.type_name not in DENSE and tensor.type_name not in QUANTIZED:
        accepted = ", ".join((*DENSE, *QUANTIZED))
        name = tensor.type_name
        raise FileError(f"{tensor.path}: type of tensor '{tensor.name}' = {name}: must be one of {accepted}")


def dtype(tensor: StoredTensor) -> torch.dtype:
    """Returns the type of `read_rows`: the stored one, float32 for blocks."""
    check_type(tensor)
    return DENSE.get(tensor.type_name, torch.float32)


def is_quantized(tensor: StoredTensor) -> bool:
    return tensor.type_name not in DENSE


def bits_per_weight(tensor: StoredTensor) -> float:
    _, elements, size = TYPES[tensor.type]
    return 8 * size / elements


def raw_rows(tensor: StoredTensor) -> np.ndarray:
    """Returns the blocks as they are stored: uint8 [rows, bytes of a row], mapped."""
    check_type(tensor)
    return np.frombuffer(tensor.data, np.uint8).reshape(tensor.num_rows, tensor.row_bytes)


def read_rows(tensor: StoredTensor, start: int = 0, stop: int | None = None, order: np.ndarray | None = None) -> Tensor:
    """Returns rows start..stop-1 of a tensor seen as a matrix, [rows, columns]; mapped where it can be.

    order: int64 [rows], the stored row of each row that is asked for
    Cost: memory for the result, and for one block of rows
    """
    stop = tensor.num_rows if stop is None else min(stop, tensor.num_rows)
    columns = tensor.shape[-1]
    if not is_quantized(tensor):
        rows = torch.frombuffer(tensor.data, dtype=dtype(tensor)).reshape(tensor.num_rows, columns)
        return rows[start:stop] if order is None else rows[torch.from_numpy(order[start:stop])]
    stored = raw_rows(tensor)
    result = torch.empty((stop - start, columns), dtype=torch.float32)
    step = max(BLOCK_ELEMENTS // columns, 1)
    for first in range(start, stop, step):
        last = min(first + step, stop)
        rows = stored[first:last] if order is None else stored[order[first:last]]
        result[first - start : last - start] = torch.from_numpy(_dequantize(rows, tensor.type))
    return result


def _dequantize(rows: np.ndarray, kind: int) -> np.ndarray:
    if find_spec("gguf") is None:
        raise ArgumentError("quantized GGUF files need gguf, which is not installed: pip install 'mote-llm[export]'")
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize

    with np.errstate(all="ignore"):  # a damaged scale may be infinite; quantization refuses it
        return np.ascontiguousarray(dequantize(rows, GGMLQuantizationType(kind)), dtype=np.float32)
