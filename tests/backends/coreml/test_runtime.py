"""The runtime for Apple's systems, compiled against declarations of what it uses of these.

tests/backends/coreml/apple has them. It shows that the source is right by the language, not what Core ML does.
"""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from mote.commands.verify import asked_for
from tests.backends.parts import ROOT

COMPILER = shutil.which("clang++") or shutil.which("clang++-19")
GENERATED = ROOT / "build/dev/base/generated"
LANGUAGE = ["-x", "objective-c++", "-fobjc-runtime=macosx-15.0", "-fobjc-arc", "-fobjc-exceptions", "-fblocks"]
WARNINGS = ["-std=c++20", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"]
INCLUDES = ["-isystem", "tests/backends/coreml/apple", "-I.", f"-I{GENERATED}"]
SOURCES = sorted(path.name for path in (ROOT / "backends/coreml").glob("*.mm"))


@pytest.mark.skipif(COMPILER is None, reason="clang++ is missing, which knows Objective-C++")
@pytest.mark.skipif(not GENERATED.is_dir(), reason=f"{GENERATED} is missing: build the C++ tests")
@pytest.mark.parametrize("source", SOURCES)
def test_it_compiles(source):
    command = [COMPILER, "-fsyntax-only", *LANGUAGE, *WARNINGS, *INCLUDES, f"backends/coreml/{source}"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(COMPILER is None, reason="clang++ is missing")
@pytest.mark.skipif(not GENERATED.is_dir(), reason=f"{GENERATED} is missing: build the C++ tests")
def test_what_asks_the_system_compiles():
    command = [COMPILER, "-fsyntax-only", "-D__APPLE__", *WARNINGS, *INCLUDES, "backends/assets/apple.cpp"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr


def test_verify_runs_the_package_itself_where_core_ml_is(monkeypatch):
    words = ["model.mote", "--backend", "coreml"]
    monkeypatch.setattr(sys, "platform", "linux")
    assert asked_for(words) and asked_for(["model.mote", "--backend=coreai"])
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not asked_for(words) and asked_for(["model.mote", "--backend=coreai"])


def test_there_is_something_to_compile():
    assert "backend.mm" in SOURCES
