"""How many cycles the inner loops of Arm's kernels should take, by LLVM's models of CPUs that need not be at hand.

    cmake --preset aarch64 && cmake --build --preset aarch64 --target mote_kernels_archive
    python benchmarks/arm_prediction.py

takes the loops out of the object files of that build, has llvm-mca run each on each CPU, and prints a table: products
of 8-bit numbers a cycle, and where weights are read from memory the bytes of them a cycle. Nothing waits for memory in
these models: a CPU whose memory gives fewer bytes a cycle waits for it, and one whose memory gives more is bound by
instructions. What a device does is told by `mote bench MODEL --profile --json` and, beside it, `--limits`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CPUS = (
    "cortex-a55", "cortex-a510", "cortex-a76", "cortex-a710", "cortex-x2", "neoverse-n1", "neoverse-v1", "neoverse-v2",
    "apple-m1",
)  # fmt: skip
ITERATIONS = 200
INSTRUCTION = re.compile(r"\s*([0-9a-f]+):\s+(.*)")
BACKWARD = re.compile(r"(?:b\.\w+|cbn?z\s+\w+,|tbn?z\s+\w+, #\w+,)\s+([0-9a-f]+)")


@dataclass(frozen=True)
class Loop:
    """An inner loop: of the object of one instruction set, the shortest one with so many products.

    products: of 8-bit numbers, in an instruction   count: instructions in a turn   tile_bytes: of weights, 0: unpacked
    """

    title: str
    isa: str
    source: str
    mnemonic: str
    products: int
    count: int
    tile_bytes: int = 0

    def is_beyond(self, cpu: str) -> bool:
        """Whether the CPU lacks what the loop's instructions need."""
        return self.isa == "i8mm" and cpu in ("cortex-a55", "cortex-a76", "neoverse-n1", "apple-m1")


LOOPS = (
    Loop("prompt, `sdot`", "dotprod", "codes_panels_int8", "sdot", 16, 16),
    Loop("prompt, `smmla`", "i8mm", "codes_panels_int8", "smmla", 32, 16),
    Loop("one token, 4 bits", "dotprod", "codes_stream_int8", "sdot", 16, 32, 272),
    Loop("two tokens, 4 bits", "dotprod", "codes_stream_int8", "sdot", 16, 64, 272),
)


def instructions(path: Path) -> tuple[list[str], dict[str, int]]:
    """Returns the instructions of an object file, and which stands at an address."""
    command = ["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", path]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    found, places = [], {}
    for match in filter(None, map(INSTRUCTION.match, lines)):
        places[match[1]] = len(found)
        found.append(match[2])
    return found, places


def shortest(path: Path, loop: Loop) -> list[str]:
    """Returns the loop's instructions. Errors: SystemExit if the object has no such loop"""
    lines, places = instructions(path)
    best: list[str] = []
    for end, line in enumerate(lines):
        match = BACKWARD.match(line)
        begin = places.get(match[1], end + 1) if match else end + 1
        body = lines[begin : end + 1]
        count = sum(text.startswith(loop.mnemonic) for text in body)
        if body and count == loop.count and (not best or len(body) < len(best)):
            best = body
    if not best:
        sys.exit(f"{path}: has no loop with {loop.count} {loop.mnemonic}")
    return [re.sub(r"\s*(//|<).*", "", line) for line in best[:-1]] + ["b.lt ."]


def cycles(mca: str, cpu: str, body: list[str]) -> float:
    """Returns the cycles of one turn of a loop that is repeated."""
    command = [mca, "-mtriple=aarch64", f"-mcpu={cpu}", "-mattr=+dotprod,+i8mm", f"-iterations={ITERATIONS}"]
    text = "\n".join(body) + "\n"
    found = subprocess.run(command, input=text, check=True, stdout=subprocess.PIPE, text=True).stdout
    return int(re.search(r"Total Cycles:\s+(\d+)", found)[1]) / ITERATIONS


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/aarch64", help="folder of the preset aarch64")
    parser.add_argument("--mca", help="llvm-mca (default: llvm-mca-19 or llvm-mca)")
    options = parser.parse_args(arguments)
    mca = options.mca or shutil.which("llvm-mca-19") or shutil.which("llvm-mca")
    if mca is None:
        parser.error("llvm-mca is not installed: it is a part of LLVM (apt install llvm-19)")
    print("| loop | " + " | ".join(CPUS) + " |\n|" + "---|" * (len(CPUS) + 1))
    for loop in LOOPS:
        folder = options.build / f"kernels/CMakeFiles/mote_kernels_{loop.isa}.dir/ops/linear"
        body = shortest(folder / f"{loop.source}.cpp.o", loop)
        cells = []
        for cpu in CPUS:
            if loop.is_beyond(cpu):
                cells.append("")
                continue
            turn = cycles(mca, cpu, body)
            text = f"{loop.products * loop.count / turn:.0f}"
            text += f", {loop.tile_bytes / turn:.1f} B" if loop.tile_bytes else ""
            cells.append(text)
        print(f"| {loop.title} | " + " | ".join(cells) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
