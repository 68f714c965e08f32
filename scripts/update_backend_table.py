"""Writes into docs/backends.md which ops backends take and what they refuse, from what they declare."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from backends.xnnpack.lowering import OPS  # noqa: E402
from backends.xnnpack.refusals import Refusal  # noqa: E402

BEGIN, END = "<!-- ops -->\n", "<!-- /ops -->"


def table() -> str:
    """Returns the Markdown between the markers of docs/backends.md."""
    lines = ["| op | taken by XNNPACK, but for |", "|---|---|"]
    for entry in dict.fromkeys(OPS.values()):
        ops = ", ".join(f"`{op}`" for op, other in OPS.items() if other is entry)
        lines.append(f"| {ops} | {words(entry.refuses)} |")
    declared = {refusal for entry in OPS.values() for refusal in entry.refuses}
    others = [refusal for refusal in Refusal if refusal not in declared and refusal is not Refusal.OP]
    return "\n".join([*lines, f"| any of them | {words(others)} |", ""])


def words(refusals: Iterable[Refusal]) -> str:
    return "; ".join(re.sub(r"\{(\w+)\}", r"*\1*", refusal.value) for refusal in refusals)


def updated(page: str) -> str:
    head, rest = page.split(BEGIN)
    return head + BEGIN + table() + END + rest.split(END)[1]


if __name__ == "__main__":
    path = ROOT / "docs" / "backends.md"
    path.write_text(updated(path.read_text()))
