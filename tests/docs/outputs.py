"""Compares the output that a page shows with what was printed, where numbers that no two runs share may differ."""

from __future__ import annotations

import re

NUMBER = r"\d+(?:\.\d+)?"
# What may differ: times, sizes of files and memory, rates, and errors, which are written with an exponent.
VARIABLE = re.compile(rf"{NUMBER}e[+-]\d+|{NUMBER} ?(?:tok/s|ns|us|ms|s|kB|MB|GB)(?![\w/])")
# Whether guesses pay is decided by measured times.
DRAFTS = re.compile(r"^\d+ of \d+ drafted tokens accepted, .*\n?", re.MULTILINE)


def normalized(text: str) -> str:
    text = VARIABLE.sub("#", DRAFTS.sub("", text))
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def matches(shown: str, printed: str) -> bool:
    """A line "..." of the page stands for any lines."""
    parts = re.split(r"^\.\.\.$", normalized(shown), flags=re.MULTILINE)
    return re.fullmatch(".*".join(re.escape(part) for part in parts), normalized(printed), re.DOTALL) is not None
