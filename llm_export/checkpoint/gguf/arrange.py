"""What llama.cpp's converter does to the rows and shapes of tensors, undone.

Source: llama.cpp conversion/*.py
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

Order = Callable[[object, int], np.ndarray]  # config, number of rows -> the stored row of each row of the module
Convert = Callable[[list[Tensor]], Tensor]  # of stored tensors in their shapes; also called with meta tensors
# Rows of a weight, and how many each of its matrices has -> the stored tensor of each, and the row there.
Places = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]


def rotated(field: str) -> Order:
    """Rows of each head in pairs, as llama.cpp rotates them for Llama, back to halves. field: of the config"""

    def order(config, rows: int) -> np.ndarray:
        heads = getattr(config, field)
        return np.arange(rows).reshape(heads, rows // heads // 2, 2).swapaxes(1, 2).ravel()

    return order


def by_head(config, rows: int) -> np.ndarray:
    """All queries, all keys, all values, back to the three of each head."""
    heads = config.num_attention_heads
    return np.arange(rows).reshape(3, heads, rows // heads // 3).swapaxes(0, 1).ravel()


def by_group(config, rows: int) -> np.ndarray:
    """All queries, all keys, all values, back to groups of the queries that share a key, the key and the value."""
    heads, groups = config.num_attention_heads, config.num_kv_heads if config.new_decoder_architecture else 1
    if not config.new_decoder_architecture and not config.multi_query:
        return by_head(config, rows)
    dim = config.hidden_size // heads
    queries, keys, values = np.split(np.arange(rows).reshape(-1, dim), (heads, heads + groups))
    parts = (queries.reshape(groups, -1, dim), keys.reshape(groups, 1, dim), values.reshape(groups, 1, dim))
    return np.concatenate(parts, 1).ravel()


def same(parts: list[Tensor]) -> Tensor:
    return parts[0]


def minus_one(parts: list[Tensor]) -> Tensor:
    return parts[0].float() - 1


def transposed(parts: list[Tensor]) -> Tensor:
    return parts[0].transpose(-1, -2)


def concatenated(parts: list[Tensor]) -> Tensor:
    """Gates, then ups: [E, N, K] each."""
    return torch.cat(parts, 1)


def interleaved(parts: list[Tensor]) -> Tensor:
    """Gate and up alternate: [E, N, K] each, [E, K, 2 N] together."""
    gate, up = parts
    return torch.stack((gate, up), 2).flatten(1, 2).transpose(1, 2)


def stored_rows_of(convert: Convert | None) -> tuple[Places | None, bool]:
    """Returns where rows of a weight lie in the stored tensors, and whether the weight is the transpose of these rows.

    The first is None where a conversion does more than move rows.
    """
    if convert in (None, same):
        return (lambda rows, _: (np.zeros_like(rows), rows)), False
    if convert is transposed:
        return (lambda rows, _: (np.zeros_like(rows), rows)), True
    if convert is concatenated:
        return _in_halves, False
    if convert is interleaved:
        return (lambda rows, _: (rows % 2, rows // 2)), True
    return None, False


def _in_halves(rows: np.ndarray, each: int) -> tuple[np.ndarray, np.ndarray]:
    matrix, row = np.divmod(rows, each)
    half = each // 2
    return row // half, matrix * half + row % half


def interleaved_bias(parts: list[Tensor]) -> Tensor:
    return torch.stack(parts, 2).flatten(1, 2)


def as_row(parts: list[Tensor]) -> Tensor:
    return parts[0].reshape(1, -1)


def as_kernel(parts: list[Tensor]) -> Tensor:
    """[channels, taps] of a convolution to [channels, 1, taps]."""
    return parts[0].reshape(parts[0].shape[0], 1, -1)
