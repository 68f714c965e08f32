"""What release binaries are built with, as their bytes say."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from llm_runner import _core

READELF = shutil.which("readelf")
# The first instruction of a function that may be called by address.
LANDING = {"x86_64": b"\xf3\x0f\x1e\xfa", "aarch64": b"\x5f\x24\x03\xd5"}
SIGNED = b"\x3f\x23\x03\xd5"  # aarch64: PACIASP, which is a landing place too

CACHE = Path(__file__).parents[2] / "build/dev/CMakeCache.txt"
# Packages are hardened, and with them what `make build` builds; a build folder may have been made otherwise.
IS_WANTED = not CACHE.is_file() or re.search(r"^MOTE_HARDEN:\w+=ON$", CACHE.read_text(), re.MULTILINE) is not None

pytestmark = [
    pytest.mark.skipif(READELF is None, reason="readelf is not installed"),
    pytest.mark.skipif(not IS_WANTED, reason="build/dev was configured without MOTE_HARDEN"),
]


def read(path: Path, *options: str) -> str:
    return subprocess.run([READELF, "-W", *options, path], capture_output=True, text=True, check=True).stdout


@pytest.fixture(params=["mote-runner", "_core"])
def binary(request, runner) -> Path:
    path = Path(runner if request.param == "mote-runner" else _core.__file__)
    if not path.read_bytes().startswith(b"\x7fELF"):
        pytest.skip("no ELF file")
    if re.search(r"__(asan|tsan|ubsan)_", read(path, "--dyn-syms")):
        pytest.skip("built with a sanitizer")
    return path


def test_its_relocations_are_read_only_and_it_may_lie_anywhere(binary):
    dynamic, segments = read(binary, "-d"), read(binary, "-l")
    assert "BIND_NOW" in dynamic or re.search(r"FLAGS_1.*\bNOW\b", dynamic)
    assert "GNU_RELRO" in segments
    assert re.search(r"GNU_STACK\s.*\bRW\s", segments)
    assert "DYN (" in read(binary, "-h")
    assert binary.suffix == ".so" or re.search(r"FLAGS_1.*\bPIE\b", dynamic)


def test_its_stack_and_its_library_calls_are_checked(binary):
    symbols = read(binary, "--dyn-syms")
    assert "__stack_chk_fail" in symbols
    if binary.suffix != ".so":  # in which the compiler may have proven all of them
        assert re.search(r"\b__(?!stack)\w+_chk\b", symbols)


def test_jumps_through_pointers_have_landing_places(binary):
    landing = LANDING.get(platform.machine())
    if landing is None:
        pytest.skip("the processor has none")
    content = binary.read_bytes()
    assert content.count(landing) + content.count(SIGNED) * (platform.machine() == "aarch64") > 1000
