"""Tables for people, at most 80 columns wide."""

from __future__ import annotations

import math
from collections.abc import Sequence

import click

WIDTH = 80
GAP = "  "


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns rows below a heading: the first column to the left and broken where the line would be too long."""
    cells = [list(heading), *map(list, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heading))]
    left = WIDTH - sum(widths[1:]) - len(GAP) * (len(heading) - 1)
    widths[0] = min(widths[0], max(left, 16))
    lines = []
    for index, (first, *others) in enumerate(cells):
        name, *more = broken(first, widths[0])
        numbers = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        line = GAP.join([name.ljust(widths[0]), *numbers]).rstrip()
        lines += [click.style(line, bold=True) if index == 0 else line, *more]
    return "\n".join(lines)


def broken(text: str, width: int) -> list[str]:
    """Returns lines of at most `width`, broken behind a space, a dot or a plus; later ones begin with two spaces."""
    lines = []
    while len(text) > width:
        end = text.rfind(" ", width // 2, width) + 1
        end = end or max(text.rfind(mark, 3, width) for mark in " .+") + 1 or width
        lines.append(text[:end].rstrip())
        text = "  " + text[end:]
    return [*lines, text]


def error_text(value: float) -> str:
    return "0" if value == 0 else "inf" if math.isinf(value) else f"{value:.1e}"


def decibels(value: float) -> str:
    return "exact" if value == math.inf else "-inf" if value == -math.inf else f"{value:.1f}"


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.1f} us"
