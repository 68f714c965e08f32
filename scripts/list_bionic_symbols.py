"""Lists what Android's C library has on 64-bit Arm and x86-64, from its public source, for tests/android/bionic.txt.

git clone https://android.googlesource.com/platform/bionic
python scripts/list_bionic_symbols.py bionic > tests/android/bionic.txt
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

API = 26  # minSdk of the library
MACHINES = {"arm64", "x86_64"}
ALL_MACHINES = MACHINES | {"arm", "x86", "riscv64"}
PRIVATE = {"platform-only", "apex", "llndk", "systemapi"}


def is_there(tags: list[str]) -> bool:
    """Says whether what a line of a map is tagged with leaves it to applications of both machines."""
    machines = ALL_MACHINES.intersection(tags)
    if PRIVATE.intersection(tags) or (machines and not machines >= MACHINES):
        return False
    since = [int(tag.split("=")[1]) for tag in tags if re.fullmatch(r"introduced(-arm64|-x86_64)?=\d+", tag)]
    return max(since, default=0) <= API


def symbols(text: str) -> set[str]:
    """Returns the names that a linker's map gives to applications."""
    found = set()
    version_is_there = is_global = False
    for line in text.splitlines():
        code, _, comment = line.partition("#")
        tags, code = comment.split(), code.strip()
        if code.endswith("{"):
            name = code.split()[0]
            version_is_there = is_there(tags) and name not in ("LIBC_PRIVATE", "LIBC_DEPRECATED", "LIBC_PLATFORM")
        elif code in ("global:", "local:"):
            is_global = code == "global:"
        elif code.endswith(";") and not code.startswith("}") and version_is_there and is_global and is_there(tags):
            found.add(code.rstrip(";"))
    return found


def main(source: Path) -> None:
    command = ["git", "-C", str(source), "rev-parse", "HEAD"]
    commit = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    print(f"# libc, libm and libdl of Android's API {API}: made by scripts/list_bionic_symbols.py of")
    print(f"# https://android.googlesource.com/platform/bionic at {commit}")
    found: set[str] = set()
    for name in ("libc", "libm", "libdl"):
        found |= symbols((source / name / f"{name}.map.txt").read_text())
    print("\n".join(sorted(found)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
