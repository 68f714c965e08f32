"""How many cycles the kernels' inner loops should take, by LLVM's models of CPUs that need not be at hand.

    python benchmarks/prediction.py x86 --build build/dev
    cmake --preset aarch64 && cmake --build --preset aarch64 --target mote_kernels_archive
    python benchmarks/prediction.py arm

takes the loops out of the object files of a build, has llvm-mca run each on each CPU, and prints a table: products of
8-bit numbers a cycle, and where weights are read from memory the bytes of them a cycle. Nothing waits for memory in
these models: a CPU whose memory gives fewer bytes a cycle waits for it, and one whose memory gives more is bound by
instructions. What a device does is told by `mote bench MODEL --profile --json` and, beside it, `--limits`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ITERATIONS = 200
INSTRUCTION = re.compile(r"\s*([0-9a-f]+):\s+(.*)")


@dataclass(frozen=True)
class Loop:
    """An inner loop: of the object of one instruction set, the shortest one with so many products.

    products: of 8-bit numbers, in an instruction   count: instructions in a turn   tile_bytes: of weights, 0: unpacked
    beside: how many instructions of other kinds it has at least: those that unpack codes and multiply sums, where a
    turn is a group of each stream
    """

    title: str
    isa: str
    source: str
    mnemonic: str
    products: int
    count: int
    tile_bytes: int = 0
    beside: dict[str, int] = field(default_factory=dict)


STREAM = "codes_stream_int8"
OF_ARM = {"ushr": 16, "mla": 4}
OF_X86 = {"vpsrlw": 1, "vpmulld": 1}


@dataclass(frozen=True)
class Architecture:
    """What differs: jumps back, the tools, and which CPU lacks the instructions of which loops."""

    cpus: tuple[str, ...]
    loops: tuple[Loop, ...]
    lacks: dict[str, tuple[str, ...]]  # by instruction set
    objdump: str
    model: tuple[str, ...]  # arguments of llvm-mca
    backward: re.Pattern
    comment: re.Pattern  # of objdump
    jump: str  # that stands for the one back


ARM = Architecture(
    cpus=("cortex-a55", "cortex-a510", "cortex-a76", "cortex-a710", "cortex-x2", "neoverse-n1", "neoverse-v1",
          "neoverse-v2", "apple-m1"),
    loops=(
        Loop("prompt, `sdot`", "dotprod", "codes_panels", "sdot", 16, 16),
        Loop("prompt, `smmla`", "i8mm", "codes_panels", "smmla", 32, 16),
        Loop("one token, 4 bits", "dotprod", STREAM, "sdot", 16, 4 * 32, 4 * 272, {"ushr": 64, "mla": 16}),
        Loop("one token, 4 bits, one stream", "dotprod", STREAM, "sdot", 16, 32, 272, OF_ARM),
        Loop("two tokens, 4 bits, one stream", "dotprod", STREAM, "sdot", 16, 64, 272, OF_ARM),
    ),
    lacks={"i8mm": ("cortex-a55", "cortex-a76", "neoverse-n1", "apple-m1")},
    objdump="aarch64-linux-gnu-objdump",
    model=("-mtriple=aarch64", "-mattr=+dotprod,+i8mm"),
    backward=re.compile(r"(?:b\.\w+|cbn?z\s+\w+,|tbn?z\s+\w+, #\w+,)\s+([0-9a-f]+)"),
    comment=re.compile(r"\s*(//|<).*"),
    jump="b.lt .",
)  # fmt: skip
X86 = Architecture(
    cpus=("haswell", "skylake", "skylake-avx512", "icelake-server", "alderlake", "sapphirerapids", "znver2", "znver3",
          "znver4"),
    loops=(
        Loop("prompt, AVX2", "avx2", "codes_pairs_panels", "vpmaddubsw", 32, 64),
        Loop("prompt, AVX-VNNI", "avxvnni", "codes_panels", "vpdpbusd", 32, 96),
        Loop("prompt, AVX-512", "avx512", "codes_pairs_panels", "vpmaddubsw", 64, 32),
        Loop("prompt, AVX-512 VNNI", "avx512vnni", "codes_panels", "vpdpbusd", 64, 128),
        Loop("one token, 4 bits, AVX2", "avx2", STREAM, "vpmaddubsw", 32, 16, 272, OF_X86),
        Loop("one token, 4 bits, AVX-VNNI", "avxvnni", STREAM, "vpdpbusd", 32, 16, 272, OF_X86),
        Loop("one token, 4 bits, AVX-512", "avx512", STREAM, "vpmaddubsw", 64, 8, 272, OF_X86),
        Loop("one token, 4 bits, AVX-512 VNNI", "avx512vnni", STREAM, "vpdpbusd", 64, 8, 272, OF_X86),
        Loop("four tokens, 4 bits, AVX2", "avx2", STREAM, "vpmaddubsw", 32, 64, 272, OF_X86),
        Loop("four tokens, 4 bits, AVX-VNNI", "avxvnni", STREAM, "vpdpbusd", 32, 64, 272, OF_X86),
        Loop("four tokens, 4 bits, AVX-512", "avx512", STREAM, "vpmaddubsw", 64, 32, 272, OF_X86),
        Loop("four tokens, 4 bits, AVX-512 VNNI", "avx512vnni", STREAM, "vpdpbusd", 64, 32, 272, OF_X86),
    ),
    lacks={
        "avxvnni": ("haswell", "skylake", "skylake-avx512", "icelake-server", "znver2", "znver3", "znver4"),
        "avx512": ("haswell", "skylake", "alderlake", "znver2", "znver3"),
        "avx512vnni": ("haswell", "skylake", "skylake-avx512", "alderlake", "znver2", "znver3"),
    },
    objdump="objdump",
    model=("-mtriple=x86_64", "-mattr=+avxvnni,+avx512vnni"),
    backward=re.compile(r"j(?!mp)\w+\s+([0-9a-f]+)"),
    comment=re.compile(r"\s*(#|<).*"),
    jump="jne .",
)  # fmt: skip


def instructions(objdump: str, path: Path) -> tuple[list[str], dict[str, int]]:
    """Returns the instructions of an object file, and which stands at an address."""
    command = [objdump, "-d", "--no-show-raw-insn", path]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    found, places = [], {}
    for match in filter(None, map(INSTRUCTION.match, lines)):
        places[match[1]] = len(found)
        found.append(match[2])
    return found, places


def shortest(architecture: Architecture, path: Path, loop: Loop) -> list[str]:
    """Returns the loop's instructions. Errors: SystemExit if the object has no such loop"""
    lines, places = instructions(architecture.objdump, path)
    product = re.compile(rf"(?:{{vex}} )?{loop.mnemonic}\s")
    best: list[str] = []
    for end, line in enumerate(lines):
        match = architecture.backward.match(line)
        begin = places.get(match[1], end + 1) if match else end + 1
        body = lines[begin : end + 1]
        count = sum(product.match(text) is not None for text in body)
        complete = all(sum(text.startswith(name) for text in body) >= least for name, least in loop.beside.items())
        if body and count == loop.count and complete and (not best or len(body) < len(best)):
            best = body
    if not best:
        sys.exit(f"{path}: has no loop with {loop.count} {loop.mnemonic}")
    # Jumps out of the loop are not taken.
    body = [architecture.comment.sub("", line) for line in best[:-1]]
    return [line for line in body if not architecture.backward.match(line)] + [architecture.jump]


def cycles(mca: str, architecture: Architecture, cpu: str, body: list[str]) -> float:
    """Returns the cycles of one turn of a loop that is repeated."""
    command = [mca, *architecture.model, f"-mcpu={cpu}", f"-iterations={ITERATIONS}"]
    text = "\n".join(body) + "\n"
    found = subprocess.run(command, input=text, check=True, stdout=subprocess.PIPE, text=True).stdout
    return int(re.search(r"Total Cycles:\s+(\d+)", found)[1]) / ITERATIONS


def row(mca: str, architecture: Architecture, build: Path, loop: Loop) -> list[str]:
    """Returns a loop's cells, one a CPU, empty where it cannot run."""
    folder = build / f"kernels/CMakeFiles/mote_kernels_{loop.isa}.dir/ops/linear"
    body = shortest(architecture, folder / f"{loop.source}.cpp.o", loop)
    cells = []
    for cpu in architecture.cpus:
        if cpu in architecture.lacks.get(loop.isa, ()):
            cells.append("")
            continue
        turn = cycles(mca, architecture, cpu, body)
        text = f"{loop.products * loop.count / turn:.0f}"
        cells.append(text + (f", {loop.tile_bytes / turn:.1f} B" if loop.tile_bytes else ""))
    return cells


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("architecture", choices=("arm", "x86"))
    parser.add_argument("--build", type=Path, help="build folder (default: that of the preset aarch64, or release)")
    parser.add_argument("--mca", help="llvm-mca (default: llvm-mca-19 or llvm-mca)")
    options = parser.parse_args(arguments)
    mca = options.mca or shutil.which("llvm-mca-19") or shutil.which("llvm-mca")
    if mca is None:
        parser.error("llvm-mca is not installed: it is a part of LLVM (apt install llvm-19)")
    architecture = ARM if options.architecture == "arm" else X86
    build = options.build or ROOT / "build" / ("aarch64" if options.architecture == "arm" else "release")
    print("| loop | " + " | ".join(architecture.cpus) + " |\n|" + "---|" * (len(architecture.cpus) + 1))
    for loop in architecture.loops:
        print(f"| {loop.title} | " + " | ".join(row(mca, architecture, build, loop)) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
