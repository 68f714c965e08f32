"""Arguments that are no options, checked on their way to the library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from llm_runner.errors import ArgumentError


def checked_int(name: str, value: Any, low: int, high: int) -> int:
    """Returns `value` as int. Errors: ArgumentError unless it is one between low and high."""
    try:
        number = value.__index__()
    except AttributeError:
        raise ArgumentError(f"{name} = {value!r}: must be an integer") from None
    if not low <= number <= high:
        raise ArgumentError(f"{name} = {number}: must be {low}..{high}")
    return number


def checked_ids(ids: Sequence[int]) -> list[int]:
    """Returns token ids as a list of int32. Errors: ArgumentError for anything else."""
    if isinstance(ids, (str, bytes)):
        raise ArgumentError("token ids must be integers, not text")
    array = np.asarray(ids)
    if array.size == 0:
        return []
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ArgumentError(f"token ids must be a list of integers, not {array.dtype} {list(array.shape)}")
    if int(array.max()) > 2**31 - 1 or int(array.min()) < -(2**31):
        raise ArgumentError(f"token id {int(array[np.abs(array.astype(object)).argmax()])}: must lie in the vocabulary")
    return array.astype(np.int32).tolist()
