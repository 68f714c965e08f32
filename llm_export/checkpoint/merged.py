"""Where the rows of a weight lie that transformers' conversion makes of several tensors, as experts one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from llm_export.program.specs import StoredRows


@dataclass(frozen=True)
class Places:
    """The tensor and the row in it of each row of a weight, those of all its matrices counted through: int64 [N]."""

    tensors: Tensor
    rows: Tensor


def find_places(
    shapes: Sequence[tuple[int, ...]], convert: Callable[[list[Tensor]], Tensor], shape: tuple[int, ...]
) -> Places | None:
    """Returns where rows of a converted weight come from; None if the conversion does more than move whole rows.

    shapes: of the tensors   convert: of tensors with one column each   shape: of what it makes of whole ones
    """
    if any(len(each) != 2 for each in shapes):
        return None
    most = max(rows for rows, _ in shapes)
    marks = [torch.arange(rows)[:, None] + index * most for index, (rows, _) in enumerate(shapes)]
    try:
        made = convert(marks)
    except (RuntimeError, ValueError):  # it needs all columns
        return None
    if tuple(made.shape) != (*shape[:-1], 1):
        return None
    return Places(made.flatten() // most, made.flatten() % most)


def gather_rows(read: Callable[[int, Tensor], StoredRows], tensors: Tensor, rows: Tensor) -> StoredRows:
    """Returns rows that lie in several tensors. read: rows (int64 [M]) of a tensor   tensors, rows: see Places"""
    parts = [read(int(index), rows[tensors == index]) for index in tensors.unique()]
    if len(parts) == 1:
        return parts[0]
    back = torch.argsort(torch.argsort(tensors, stable=True))
    return StoredRows(*(None if each[0] is None else torch.cat(each)[back] for each in zip(*parts, strict=True)))
