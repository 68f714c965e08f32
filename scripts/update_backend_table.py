"""Writes into docs/backends.md which ops backends take and what they refuse, from what they declare."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable
from enum import Enum
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

NAMES = {"xnnpack": "XNNPACK", "vulkan": "Vulkan", "coreai": "Core AI and Core ML", "qnn": "QNN"}


def table(backend: str) -> str:
    """Returns the Markdown between a backend's markers in docs/backends.md."""
    lowering = importlib.import_module(f"backends.{backend}.lowering")
    ops, refusals = lowering.OPS, lowering.Refusal
    lines = [f"| op | taken by {NAMES[backend]}, but for |", "|---|---|"]
    # By families: in which order these were imported is nobody's business.
    for entry in sorted(dict.fromkeys(ops.values()), key=lambda entry: entry.lower.__module__):
        names = ", ".join(f"`{op}`" for op, other in ops.items() if other is entry)
        lines.append(f"| {names} | {words(entry.refuses)} |")
    declared = {refusal for entry in ops.values() for refusal in entry.refuses}
    others = [refusal for refusal in refusals if refusal not in declared and refusal is not refusals.OP]
    return "\n".join([*lines, f"| any of them | {words(others)} |", ""])


def words(refusals: Iterable[Enum]) -> str:
    return "; ".join(re.sub(r"\{(\w+)\}", r"*\1*", refusal.value) for refusal in refusals)


def updated(page: str) -> str:
    for backend in NAMES:
        begin, end = f"<!-- ops of {backend} -->\n", f"<!-- /ops of {backend} -->"
        head, rest = page.split(begin)
        page = head + begin + table(backend) + end + rest.split(end)[1]
    return page


if __name__ == "__main__":
    path = ROOT / "docs" / "backends.md"
    path.write_text(updated(path.read_text()))
