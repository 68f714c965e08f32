"""Writes the table of supported model types into docs/models.md from the rows that the end-to-end tests run."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.contracts.architectures import ROWS  # noqa: E402

BEGIN, END = "<!-- models -->\n", "<!-- /models -->"


def table() -> str:
    """Returns the Markdown between the markers of docs/models.md."""
    variants = defaultdict(list)
    failures = {}
    for row in ROWS:
        if row.failure:
            failures[row.name] = row.failure
        else:
            variants[row.model_type].append(row.variant)
    supported = [describe(name, kinds) for name, kinds in sorted(variants.items())]
    lines = [f"{len(variants)} types: {', '.join(supported)}.", ""]
    if failures:
        lines += ["| not yet | why |", "|---|---|"]
        lines += [f"| `{name}` | {reason} |" for name, reason in sorted(failures.items())]
        lines.append("")
    return "\n".join(lines)


def describe(name: str, kinds: list[str]) -> str:
    extra = sorted(kind for kind in kinds if kind)
    return f"`{name}` ({', '.join(extra)})" if extra else f"`{name}`"


def updated(page: str) -> str:
    head, rest = page.split(BEGIN)
    return head + BEGIN + table() + END + rest.split(END)[1]


if __name__ == "__main__":
    path = ROOT / "docs" / "models.md"
    path.write_text(updated(path.read_text()))
