"""Ops take as many instructions as instructions.json says: what no noise of a machine hides and no timing tells.

    python tests/kernels/check_instructions.py --program build/dev/tests/kernels/count_instructions --update

writes the file anew, for those of its levels that this CPU has, after a change that means to change them. Counts hold
for one compiler: with another, and for levels that this CPU lacks, nothing is checked.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

FILE = Path(__file__).with_name("instructions.json")
TOLERANCE = 0.03
SKIPPED = 77
# One version of the C library's functions on every CPU: those for newer ones take other numbers of instructions.
PLAIN_C_LIBRARY = (
    "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-FMA,-FMA4,-ERMS,-FSRM,-SSSE3,-SSE4_1,-SSE4_2"
)


def measure(program: str, level: str) -> dict | None:
    """Returns what the program prints: {"features", "compiler", "counts": {case: count}}; None: the CPU lacks it."""
    settings = {"MOTE_CPU_FEATURES": level, "GLIBC_TUNABLES": PLAIN_C_LIBRARY}

    def run(*arguments: str) -> dict:
        command = [program, *arguments]
        found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | settings)
        return json.loads(found.stdout)

    return run() if set(run("features")["features"].split("+")) == set(level.split("+")) else None


def update(program: str, kept: dict) -> None:
    for level in kept["counts"]:
        found = measure(program, level)
        if found is not None:
            kept["compiler"], kept["counts"][level] = found["compiler"], found["counts"]
    FILE.write_text(json.dumps(kept, indent=1) + "\n")


def compare(level: str, found: dict[str, int], expected: dict[str, int]) -> list[str]:
    """Returns a line for each case that is not as it was."""
    lines = [f"{level}: {name}: is in one of the two only" for name in sorted(found.keys() ^ expected.keys())]
    for name in found.keys() & expected.keys():
        change = found[name] / expected[name] - 1
        if abs(change) > TOLERANCE:
            lines.append(f"{level}: {name}: {found[name]} instructions, were {expected[name]} ({change:+.1%})")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="count_instructions")
    kept = json.loads(FILE.read_text())
    parser.add_argument("--level", choices=kept["counts"], help="to check")
    parser.add_argument("--update", action="store_true", help="write what is found instead")
    options = parser.parse_args()
    if options.update:
        update(options.program, kept)
        return 0
    found = measure(options.program, options.level)
    if found is None or found["compiler"] != kept["compiler"] or not kept["counts"][options.level]:
        print(f"{options.level}: not checked: needs such a CPU, figures of it, and {kept['compiler']}")
        return SKIPPED
    lines = compare(options.level, found["counts"], kept["counts"][options.level])
    print("\n".join(lines) or f"{options.level}: as in {FILE.name}")
    if lines:
        print(f"If that is meant: {sys.executable} {' '.join(sys.argv[:1])} --program {options.program} --update")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
