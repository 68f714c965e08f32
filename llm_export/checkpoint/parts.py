"""Names of parts of a checkpoint's weights: some rows of each head of a matrix, as a stack of matrices."""

from __future__ import annotations

import re
from typing import NamedTuple

from torch import Tensor

_PATTERN = re.compile(r"(.+)@(\d+),(\d+):(\d+)")


class Part(NamedTuple):
    """Rows [start, stop) of each of `heads` parts of equally many rows: [heads, stop - start, columns]."""

    source: str
    heads: int
    start: int
    stop: int

    @classmethod
    def of(cls, name: str) -> Part | None:
        """What `name` names; None for a name that is none of a part."""
        found = _PATTERN.fullmatch(name)
        return found and cls(found[1], *map(int, found.groups()[1:]))

    def take(self, weight: Tensor) -> Tensor:
        """A view of weight [heads * rows, columns]."""
        return weight.unflatten(0, (self.heads, -1))[:, self.start : self.stop]


def part_name(source: str, heads: int, start: int, stop: int) -> str:
    return f"{source}@{heads},{start}:{stop}"
