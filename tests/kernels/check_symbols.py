"""Objects that are compiled for newer CPUs hold nothing that an older one might run.

A linker keeps one of the weak definitions of a name, and it may be the one from such an object: so every weak symbol
must have the instruction set's namespace in its name. What runs before main must only register kernels.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys

NAMESPACE = re.compile(r"(4avx2|7avxvnni|6avx512|10avx512vnni|3amx|7dotprod|4i8mm|3sme)")
REGISTER = "_ZN4mote15register_kernelEPKNS_6KernelE"
CALL = re.compile(r"R_X86_64_(?:PLT32|GOTPCREL\w*)\s+(\S+?)-0x|R_AARCH64_(?:CALL|JUMP)26\s+(\S+)")
VECTOR = re.compile(r"^\s*[0-9a-f]+:\s+v\w+", re.MULTILINE)  # of x86: AVX and later


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def weak_symbols(nm: str, path: str) -> list[str]:
    fields = [line.split() for line in output_of(nm, "--defined-only", "--format=posix", path).splitlines()]
    names = [field[0] for field in fields if len(field) > 1 and field[1] in "VWu"]
    return [name for name in names if not NAMESPACE.search(name) and not name.startswith("DW.ref.")]


def initialisers(objdump: str, path: str) -> list[str]:
    """What is wrong with the code that runs before main."""
    if ".text.startup" not in output_of(objdump, "-h", path):
        return []
    code = output_of(objdump, "-dr", "--no-show-raw-insn", "-j", ".text.startup", path)
    called = {x86 or arm for x86, arm in CALL.findall(code)} - {REGISTER}
    return [f"calls {name} before main" for name in sorted(called)] + (
        ["runs AVX instructions before main"] if VECTOR.search(code) else []
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nm", required=True)
    parser.add_argument("--objdump", required=True)
    parser.add_argument("objects", nargs="+")
    arguments = parser.parse_args()
    problems = []
    for path in arguments.objects:
        problems += [f"{path}: weak symbol {name}" for name in weak_symbols(arguments.nm, path)]
        problems += [f"{path}: {problem}" for problem in initialisers(arguments.objdump, path)]
    print("\n".join(problems) or f"{len(arguments.objects)} objects hold nothing that an older CPU might run")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
