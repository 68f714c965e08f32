"""Blocks of GGUF tensors as the numbers that tiles hold, taken apart and put together without any rounding.

The layouts of blocks are those of ggml's ggml-common.h and ggml-quants.c, as `gguf.quants` reads them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from llm_export.checkpoint.gguf.blocks import raw_rows
from llm_export.checkpoint.gguf.reader import TYPES, StoredTensor
from llm_export.program.specs import StoredFormat, StoredRows, TileScales
from llm_export.program.stored import FP4_FORMAT, FP4_VALUES, exponents_fit, fp4_rows

IQ4_VALUES = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
FORMATS = {
    "Q4_0": StoredFormat(4, 32, TileScales(32)),
    "Q4_1": StoredFormat(4, 32, TileScales(32, "minimum")),
    "Q5_0": StoredFormat(5, 32, TileScales(32)),
    "Q5_1": StoredFormat(5, 32, TileScales(32, "minimum")),
    "Q8_0": StoredFormat(8, 32, TileScales(32)),
    "Q2_K": StoredFormat(2, 16, TileScales(256, "minimum")),
    "Q3_K": StoredFormat(3, 16, TileScales(256)),
    "Q4_K": StoredFormat(4, 32, TileScales(256, "minimum")),
    "Q5_K": StoredFormat(5, 32, TileScales(256, "minimum")),
    "Q6_K": StoredFormat(6, 16, TileScales(256)),
    "IQ4_NL": StoredFormat(4, 32, TileScales(32, codebook=IQ4_VALUES)),
    "IQ4_XS": StoredFormat(4, 32, TileScales(256, codebook=IQ4_VALUES)),
    "MXFP4": FP4_FORMAT,
    "NVFP4": StoredFormat(4, 16, TileScales(16, codebook=FP4_VALUES)),
}
MXFP4_BIAS = 128  # of the exponent, for codes that stand for twice their value


def stored_format(tensor: StoredTensor) -> StoredFormat | None:
    """Returns the format of tiles that holds what the tensor's blocks hold; None if there is none."""
    found = FORMATS.get(tensor.type_name)
    if tensor.type_name == "MXFP4" and not _exponents_fit(tensor):
        return None
    return found


def stored_rows(tensor: StoredTensor, start: int, stop: int, order: np.ndarray | None) -> StoredRows:
    """Returns rows start..stop-1 of a tensor that has a stored_format. order: the stored row of each row"""
    rows = raw_rows(tensor)
    rows = rows[start:stop] if order is None else rows[order[start:stop]]
    blocks = rows.reshape(rows.shape[0], -1, TYPES[tensor.type][2])
    return _READERS[tensor.type_name](blocks)


def _halves(blocks: np.ndarray, at: int) -> Tensor:
    """float16 at a byte of each block. blocks: uint8 [N, blocks, bytes]   Returns: [N, blocks]"""
    return torch.from_numpy(np.ascontiguousarray(blocks[..., at : at + 2]).view(np.float16)[..., 0])


def _matrix(values: np.ndarray, dtype: type) -> Tensor:
    """[N, blocks, ..] as [N, all of a row]."""
    return torch.from_numpy(np.ascontiguousarray(values.reshape(values.shape[0], -1).astype(dtype)))


def _nibbles(bytes_: np.ndarray, together: int) -> np.ndarray:
    """Low nibbles of `together` bytes, then their high ones, and so on: uint8 [N, blocks, 2 * bytes]."""
    parts = bytes_.reshape(*bytes_.shape[:2], -1, together)
    return np.stack([parts & 15, parts >> 4], axis=-2).reshape(*bytes_.shape[:2], -1)


def _bits(bytes_: np.ndarray) -> np.ndarray:
    """The bits of little-endian words, the lowest first: uint8 [N, blocks, 8 * bytes]."""
    return np.unpackbits(bytes_, axis=-1, bitorder="little")


def _simple(scale_at: int, minimum_at: int | None, digits: Callable[[np.ndarray], np.ndarray]):
    def read(blocks: np.ndarray) -> StoredRows:
        minimums = None if minimum_at is None else _halves(blocks, minimum_at)
        return StoredRows(_matrix(digits(blocks), np.uint8), _halves(blocks, scale_at), minimums=minimums)

    return read


def _six_bits(scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The eight 6-bit scales and minimums of Q4_K and Q5_K. scales: uint8 [N, blocks, 12]"""
    low, middle, high = scales[..., 0:4], scales[..., 4:8], scales[..., 8:12]
    multipliers = np.concatenate([low & 63, (high & 15) | (low >> 6 << 4)], axis=-1)
    minimums = np.concatenate([middle & 63, (high >> 4) | (middle >> 6 << 4)], axis=-1)
    return multipliers, minimums


def _k_minimums(digits: np.ndarray, blocks: np.ndarray, at: int, multipliers: np.ndarray, lows: np.ndarray):
    # What is added is minus minimum * low; minus a float16 is one too.
    return StoredRows(
        _matrix(digits, np.uint8), _halves(blocks, at), _matrix(multipliers, np.int8), -_halves(blocks, at + 2),
        _matrix(lows, np.int8),
    )  # fmt: skip


def _q2_k(blocks: np.ndarray) -> StoredRows:
    scales, quarters = blocks[..., :16], blocks[..., 16:80].reshape(*blocks.shape[:2], 2, 32)
    digits = np.stack([quarters >> shift & 3 for shift in (0, 2, 4, 6)], axis=-2)
    return _k_minimums(digits, blocks, 80, scales & 15, scales >> 4)


def _q3_k(blocks: np.ndarray) -> StoredRows:
    high, quarters = blocks[..., :32], blocks[..., 32:96].reshape(*blocks.shape[:2], 2, 32)
    low = np.stack([quarters >> shift & 3 for shift in (0, 2, 4, 6)], axis=-2).reshape(*blocks.shape[:2], 8, 32)
    top = np.stack([high >> bit & 1 for bit in range(8)], axis=-2)
    packed = blocks[..., 96:108]
    first, rest = packed[..., :8], packed[..., 8:12]
    upper = np.stack([rest >> shift & 3 for shift in (0, 2, 4, 6)], axis=-2).reshape(*blocks.shape[:2], 16)
    multipliers = np.concatenate([first & 15, first >> 4], axis=-1) | upper << 4
    return StoredRows(
        _matrix(low | top << 2, np.uint8), _halves(blocks, 108), _matrix(multipliers.astype(np.int8) - 32, np.int8)
    )


def _q4_k(blocks: np.ndarray) -> StoredRows:
    return _k_minimums(_nibbles(blocks[..., 16:144], 32), blocks, 0, *_six_bits(blocks[..., 4:16]))


def _q5_k(blocks: np.ndarray) -> StoredRows:
    top = np.stack([blocks[..., 16:48] >> bit & 1 for bit in range(8)], axis=-2).reshape(*blocks.shape[:2], -1)
    return _k_minimums(_nibbles(blocks[..., 48:176], 32) | top << 4, blocks, 0, *_six_bits(blocks[..., 4:16]))


def _q6_k(blocks: np.ndarray) -> StoredRows:
    low = _nibbles(blocks[..., :128], 64)
    halves = blocks[..., 128:192].reshape(*blocks.shape[:2], 2, 32)
    top = np.stack([halves >> shift & 3 for shift in (0, 2, 4, 6)], axis=-2).reshape(*blocks.shape[:2], -1)
    multipliers = np.ascontiguousarray(blocks[..., 192:208]).view(np.int8)
    return StoredRows(_matrix(low | top << 4, np.uint8), _halves(blocks, 208), _matrix(multipliers, np.int8))


def _iq4_xs(blocks: np.ndarray) -> StoredRows:
    top = np.ascontiguousarray(blocks[..., 2:4]).view("<u2")
    low = np.stack([blocks[..., 4:8] & 15, blocks[..., 4:8] >> 4], axis=-1).reshape(*blocks.shape[:2], 8)
    multipliers = low | (top >> np.arange(0, 16, 2, dtype=np.uint16) & 3).astype(np.uint8) << 4
    return StoredRows(
        _matrix(_nibbles(blocks[..., 8:136], 16), np.uint8), _halves(blocks, 0),
        _matrix(multipliers.astype(np.int8) - 32, np.int8),
    )  # fmt: skip


def _fp4(blocks: np.ndarray) -> tuple[Tensor, Tensor]:
    """Codes [N, K] and exponents [N, K / 32] of MXFP4 blocks."""
    return _matrix(_nibbles(blocks[..., 1:17], 16), np.uint8), _matrix(blocks[..., 0], np.int16) - MXFP4_BIAS


def _nvfp4(blocks: np.ndarray) -> StoredRows:
    # Scales are E4M3 whose sign says nothing and whose 127 is 0, halved: codes stand for twice their value.
    exponents, mantissas = (blocks[..., :4] >> 3 & 15).astype(np.int32), (blocks[..., :4] & 7).astype(np.float32)
    scales = np.ldexp(np.where(exponents == 0, mantissas, mantissas + 8), np.maximum(exponents, 1) - 11)
    scales = np.where(blocks[..., :4] == 127, np.float32(0), scales)
    return StoredRows(_matrix(_nibbles(blocks[..., 4:36], 8), np.uint8), _matrix(scales, np.float16))


def _exponents_fit(tensor: StoredTensor) -> bool:
    rows = raw_rows(tensor)
    step = max((1 << 20) // max(rows.shape[1], 1), 1)
    return all(
        exponents_fit(*_fp4(rows[start : start + step].reshape(-1, rows.shape[1] // 17, 17)))
        for start in range(0, len(rows), step)
    )


_READERS: dict[str, Callable[[np.ndarray], StoredRows]] = {
    "Q4_0": _simple(0, None, lambda blocks: _nibbles(blocks[..., 2:18], 16)),
    "Q4_1": _simple(0, 2, lambda blocks: _nibbles(blocks[..., 4:20], 16)),
    "Q5_0": _simple(0, None, lambda blocks: _nibbles(blocks[..., 6:22], 16) | _bits(blocks[..., 2:6]) << 4),
    "Q5_1": _simple(0, 2, lambda blocks: _nibbles(blocks[..., 8:24], 16) | _bits(blocks[..., 4:8]) << 4),
    "Q8_0": _simple(0, None, lambda blocks: blocks[..., 2:34] ^ 128),
    "IQ4_NL": _simple(0, None, lambda blocks: _nibbles(blocks[..., 2:18], 16)),
    "Q2_K": _q2_k, "Q3_K": _q3_k, "Q4_K": _q4_k, "Q5_K": _q5_k, "Q6_K": _q6_k, "IQ4_XS": _iq4_xs,
    "MXFP4": lambda blocks: fp4_rows(*_fp4(blocks)), "NVFP4": _nvfp4,
}  # fmt: skip
