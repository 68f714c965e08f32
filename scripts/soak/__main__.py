"""Runs for a long time what the tests run for seconds, and writes what it found into docs/reliability.md.

python -m scripts.soak --seconds 3600
python -m scripts.soak --only R6,R11 --share 0.01 --no-write
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
import time
from pathlib import Path

from scripts.soak import coverage, faults, mutations, server, sessions, texts
from scripts.soak.figures import ROOT, Figure, Size

SUBJECTS = {}
for module in (mutations, texts, faults, sessions, server, coverage):
    SUBJECTS |= module.SUBJECTS
PAGE = ROOT / "docs" / "reliability.md"
ROW = re.compile(r"\| (R\d+) \|.*\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rules, as R5,R6; without it all of them")
    parser.add_argument("--seconds", type=float, default=60, help="of each mutator and each test of threads")
    parser.add_argument("--share", type=float, default=1, help="of the counts of everything else")
    parser.add_argument("--model", type=Path, default=ROOT / "out" / "demo.mote")
    parser.add_argument("--no-write", action="store_true", help="leave docs/reliability.md as it is")
    arguments = parser.parse_args()
    rules = [rule for rule in arguments.only.split(",") if rule] or list(SUBJECTS)
    unknown = [rule for rule in rules if rule not in SUBJECTS]
    if unknown:
        parser.error(f"--only {','.join(unknown)}: must be of {', '.join(SUBJECTS)}")
    size = Size(arguments.seconds, arguments.share, arguments.model)
    failed = 0
    for rule in rules:
        start = time.monotonic()
        figures = SUBJECTS[rule](size)
        for figure in figures:
            failed += not figure.holds
            print(f"{figure.rule:4} {figure.what:40} {figure.found}{'' if figure.holds else '  <- NOT AS PROMISED'}")
        print(f"{rule}: {time.monotonic() - start:.0f} s", flush=True)
        if not arguments.no_write:
            write(rule, figures)
    return int(failed > 0)


def write(rule: str, figures: list[Figure]) -> None:
    """Replaces the rule's rows in the page's table."""
    today = datetime.date.today().isoformat()
    rows = [f"| {f.rule} | {f.what} | {f.found} | {'yes' if f.holds else '**no**'} | {today} |\n" for f in figures]
    text = PAGE.read_text()
    found = list(ROW.finditer(text, text.index("| rule | what |")))
    others = [(match[1], match[0]) for match in found if match[1] != rule]
    ordered = sorted([*others, *((rule, row) for row in rows)], key=lambda pair: int(pair[0][1:]))
    header = text.index("|---", text.index("| rule | what |"))
    begin = found[0].start() if found else text.index("\n", header) + 1
    end = found[-1].end() if found else begin
    PAGE.write_text(text[:begin] + "".join(row for _, row in ordered) + text[end:])


if __name__ == "__main__":
    sys.exit(main())
