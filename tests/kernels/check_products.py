"""The probe of int8 products executes each product that it counts: none is shared, skipped or computed before the loop.

Counts product instructions in the probe's object. Its loops are unrolled, and each turn runs every one of them once.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys

# Of each instruction set: the product instruction, and how often it stands in the loops of all functions.
PRODUCTS = {
    "avx2": ("vpmaddubsw", 32 + 20),  # 2 x 8 x 64 with codes of 4 bits; 5 x 64 with 8 bits, each in two instructions
    "avxvnni": ("vpdpbusd", 10),  # 5 x 64, 32 each
    "avx512": ("vpmaddubsw", 16 + 10),  # as avx2, 64 each
    "avx512vnni": ("vpdpbusd", 16),  # 16 x 64, 64 each
    "dotprod": ("sdot", 20),  # 5 x 64, 16 each
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objdump", required=True)
    parser.add_argument("--isa", required=True)
    parser.add_argument("objects", nargs="+", help="of a library for that instruction set")
    arguments = parser.parse_args()
    paths = [path for path in arguments.objects if "multiply_int8" in path]
    if arguments.isa not in PRODUCTS:
        print(f"{arguments.isa}: has no probe" if not paths else f"{arguments.isa}: is not in PRODUCTS")
        return 1 if paths else 0
    instruction, wanted = PRODUCTS[arguments.isa]
    command = [arguments.objdump, "-d", "--no-show-raw-insn", *paths]
    code = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = len(re.findall(rf"\s{instruction}\s", code))
    print(f"{', '.join(paths)}: {found} {instruction}, must be {wanted}")
    return 0 if len(paths) == 1 and found == wanted else 1


if __name__ == "__main__":
    sys.exit(main())
