"""Inner loops that are taken out of object files."""

import shutil
import subprocess

import pytest

from benchmarks.prediction import ARM, X86, Loop, cycles, shortest

COMPILER = shutil.which("aarch64-linux-gnu-gcc")
MCA = shutil.which("llvm-mca-19") or shutil.which("llvm-mca")
LOOP = Loop("a loop", "dotprod", "loops", "sdot", 16, 2)
PRODUCT = "sdot v0.4s, v1.16b, v2.16b\n"
SOURCE = f"""
.arch armv8.2-a+dotprod
long: {PRODUCT} {PRODUCT} mov x1, x2
subs x0, x0, #1
b.ne long
short: {PRODUCT} {PRODUCT} subs x0, x0, #1
b.ne short
other: {PRODUCT} cbnz x0, other
forward: {PRODUCT} {PRODUCT} b.ne end
end: ret
"""


@pytest.fixture
def compiled(tmp_path):
    if COMPILER is None or shutil.which("aarch64-linux-gnu-objdump") is None:
        pytest.skip("g++-aarch64-linux-gnu is not installed")
    (tmp_path / "loops.s").write_text(SOURCE)
    subprocess.run([COMPILER, "-c", tmp_path / "loops.s", "-o", tmp_path / "loops.o"], check=True)
    return tmp_path / "loops.o"


def test_the_shortest_loop_with_so_many_products(compiled):
    assert [line.split()[0] for line in shortest(ARM, compiled, LOOP)] == ["sdot", "sdot", "subs", "b.lt"]


def test_a_loop_that_holds_what_it_must(compiled):
    loop = Loop("a loop", "dotprod", "loops", "sdot", 16, 2, beside={"mov": 1})
    assert [line.split()[0] for line in shortest(ARM, compiled, loop)] == ["sdot", "sdot", "mov", "subs", "b.lt"]


def test_a_loop_that_is_not_there_is_named(compiled):
    with pytest.raises(SystemExit, match="has no loop with 3 sdot"):
        shortest(ARM, compiled, Loop("a loop", "dotprod", "loops", "sdot", 16, 3))


@pytest.mark.skipif(MCA is None, reason="llvm-mca is not installed")
def test_cycles_of_a_turn():
    turn = cycles(MCA, ARM, "cortex-a55", ["sdot v0.4s, v1.16b, v2.16b", "sdot v3.4s, v1.16b, v2.16b", "b.lt ."])
    assert 1 <= turn <= 20


@pytest.mark.skipif(MCA is None, reason="llvm-mca is not installed")
def test_cycles_of_a_turn_of_x86():
    product = "{vex} vpdpbusd %ymm0,%ymm1,%ymm2"
    assert cycles(MCA, X86, "alderlake", [product, "jne ."]) > 1
