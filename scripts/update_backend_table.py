"""Writes into docs/backends.md which ops backends take and what they refuse, from the examples of their tests."""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from backends.xnnpack import lowering  # noqa: E402
from tests.backends.xnnpack.refusals import REFUSED, refusing_function  # noqa: E402

BEGIN, END = "<!-- ops -->\n", "<!-- /ops -->"


def table() -> str:
    """Returns the Markdown between the markers of docs/backends.md."""
    of_all, of_function = reasons()
    lines = ["| op | taken by XNNPACK, but for |", "|---|---|"]
    functions = dict.fromkeys(lowering.OPS.values())
    for function in functions:
        ops = [f"`{op}`" for op, lower in lowering.OPS.items() if lower is function]
        refused = [reason for name, reason in of_function if name in reached(function)]
        lines.append(f"| {', '.join(ops)} | {'; '.join(refused)} |")
    lines.append(f"| any of them | {'; '.join(of_all)} |")
    return "\n".join([*lines, ""])


def reasons() -> tuple[list[str], list[tuple[str, str]]]:
    """Those that any op may have, and those of functions of lowering.py by their name."""
    of_all, of_function = [], []
    for reason, part in REFUSED.items():
        file, name = refusing_function(part)
        if file != lowering.__file__:
            of_all.append(reason)
        elif hasattr(lowering, name):  # not XnnpackBackend.lower, which refuses all other ops
            of_function.append((name, reason))
    return of_all, of_function


def reached(function: Callable) -> set[str]:
    """The names of a function of lowering.py and of those that it calls."""
    found, left = set(), [function]
    while left:
        current = left.pop()
        found.add(current.__name__)
        names = global_names(current.__code__)
        left += [callee for name in names - found if inspect.isfunction(callee := getattr(lowering, name, None))]
    return found


def global_names(code: CodeType) -> set[str]:
    """What a function reads of its module, also in functions inside it."""
    names = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return names.union(*(global_names(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def updated(page: str) -> str:
    head, rest = page.split(BEGIN)
    return head + BEGIN + table() + END + rest.split(END)[1]


if __name__ == "__main__":
    path = ROOT / "docs" / "backends.md"
    path.write_text(updated(path.read_text()))
