"""Continues the golden prompts of a .mote file with every set of instructions that this machine has or emulates.

Token ids and the hash of all logits must be equal everywhere: with CPU features masked, and on emulated Arm CPUs where
build/aarch64 was built, with KleidiAI's kernels too if it has them. Reads build/dev/tests/runner/program/greedy and its
twin in build/aarch64; with --windows the one in build/windows, under wine.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

KLEIDIAI = Path("build/aarch64/kernels/vendor/kleidiai/CMakeFiles/mote_kleidiai.dir")
PROGRAM = Path("tests/runner/program/greedy")
MASKS = {
    "x86_64": ["", "avx2+avx512vnni", "avx2+avx512", "avx2+avxvnni", "avx2", "none"],
    "aarch64": ["", "dotprod", "none"],
}
EMULATED = ["max", "cortex-a76", "cortex-a53"]


def run(command: list[str], variables: dict[str, str], file: str) -> tuple[str, str]:
    """The CPU features that were used, and the ids and hashes."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MOTE_")} | variables
    done = subprocess.run([*command, file], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        return "-", f"exit status {done.returncode}: {done.stderr.strip()}"
    features, _, results = done.stdout.partition("\n")
    return features.removeprefix("features "), results


def windows_cases() -> list[tuple[str, list[str], dict[str, str]]]:
    wine = shutil.which("wine64") or "/usr/lib/wine/wine64"
    program = f"build/windows/{PROGRAM}.exe"
    return [
        (f"Windows {mask or 'as it is'}", [wine, program], {"MOTE_CPU_FEATURES": mask} if mask else {})
        for mask in MASKS["x86_64"]
    ]


def cases() -> list[tuple[str, list[str], dict[str, str]]]:
    machine = "aarch64" if platform.machine() in ("aarch64", "arm64") else platform.machine()
    native = str("build/dev" / PROGRAM)
    found = [
        (f"{machine} {mask or 'as it is'}", [native], {"MOTE_CPU_FEATURES": mask} if mask else {})
        for mask in MASKS.get(machine, [""])
    ]
    emulated = "build/aarch64" / PROGRAM
    if emulated.exists() and machine != "aarch64":
        emulator = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-cpu"]
        found += [(f"emulated {cpu}", [*emulator, cpu, str(emulated)], {}) for cpu in EMULATED]
        for cpu, isa in (("max", "i8mm"), ("cortex-a76", "dotprod")) if KLEIDIAI.exists() else ():
            pinned = {"MOTE_KERNEL": f"codes_kleidiai_1x8_{isa},codes_kleidiai_4x8_{isa}"}
            found.append((f"KleidiAI, emulated {cpu}", [*emulator, cpu, str(emulated)], pinned))
    return found


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("file", metavar="FILE.mote")
    arguments.add_argument(
        "--windows", action="store_true", help="with build/windows under wine, and this machine as it is"
    )
    given = arguments.parse_args()
    expected = ""
    failures = 0
    for name, command, variables in [*cases()[:1], *windows_cases()] if given.windows else cases():
        features, results = run(command, variables, given.file)
        expected = expected or results
        equal = results == expected and "logits" in results
        failures += not equal
        print(f"{name:31} {features:32} {'equal to the bit' if equal else 'DIFFERS: ' + results}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
