"""What a long run found, as rows of a table."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Figure:
    """One row: a rule, what was done, what was found, and whether that is what is promised."""

    rule: str  # "R5"
    what: str
    found: str
    holds: bool


@dataclass(frozen=True)
class Size:
    """How long everything runs.

    seconds: of each mutator and each thread test
    share: of the counts of everything else; 1 is what docs/reliability.md shows
    """

    seconds: float = 60
    share: float = 1
    model: Path = ROOT / "out" / "demo.mote"

    def count(self, full: int) -> int:
        return max(1, round(full * self.share))


def run(command: list[str | Path], **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs in the repository's root, with these environment variables too."""
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True, errors="replace")


def last_lines(done: subprocess.CompletedProcess[str], count: int = 20) -> str:
    return "\n".join((done.stdout + done.stderr).splitlines()[-count:])
