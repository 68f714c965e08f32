"""The runtime for Apple's systems with a library in Core AI's place: sessions give the CPU's text.

With MOTE_SWIFT, a folder with a Debian that has Swift (scripts/fetch_swift.sh), Swift compiles what calls Core AI
against apple/CoreAI.swift, and sessions run on that too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from backends.coreai.lowering import ASSET
from tests.backends.assets.lowering import COREAI, export
from tests.backends.assets.test_sessions import assert_same, assert_same_where_both_say
from tests.backends.models import RUN_SESSION, session_lines
from tests.backends.parts import ROOT

SWIFT = os.environ.get("MOTE_SWIFT", "")
COMPILE = """set -e
mount --bind "$1" "$3/src"; mount --bind "$2" "$3/out"; mount -t proc proc "$3/proc"; mount --bind /dev "$3/dev"
exec chroot "$3" /usr/bin/env -i PATH=/usr/bin:/bin:/usr/libexec/swift/bin HOME=/root LANG=C.UTF-8 sh -ec '
  cd /out; swift="swiftc -swift-version 6 -O -parse-as-library -warnings-as-errors"
  apple=/src/tests/backends/coreai/apple/CoreAI.swift; here=/src/backends/coreai
  $swift -emit-library -static -emit-module -module-name CoreAI $apple -o libCoreAI.a
  $swift -emit-library -module-name MoteCoreAI -I . -import-objc-header $here/runtime.h $here/runtime.swift \
    libCoreAI.a -o libmote_coreai_swift.so'
"""


@pytest.fixture(scope="module", params=[False, True], ids=["states", "carried"])
def carries(request) -> bool:
    """Whether states are inputs and outputs."""
    return request.param


@pytest.fixture(scope="module")
def file(carries, tmp_path_factory) -> Path:
    return export(tmp_path_factory.mktemp("coreai"), backend="coreai", kind=COREAI, carries=carries)


@pytest.fixture(scope="module")
def swift(tmp_path_factory) -> str:
    """The library that Swift makes; run by the loader of the same system."""
    if not SWIFT:
        pytest.skip("MOTE_SWIFT names no folder with Swift")
    out, root = tmp_path_factory.mktemp("swift"), Path(SWIFT).resolve()
    for name in ("src", "out"):
        (root / name).mkdir(exist_ok=True)
    run = ["unshare", "-m", "sh", "-c", COMPILE, "sh", ROOT, out, root]
    result = subprocess.run(run, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    return str(out / "libmote_coreai_swift.so")


@pytest.fixture(scope="module")
def swift_program(swift, tmp_path_factory) -> Path:
    """run_session, in place of which models.session_lines starts it by that loader."""
    root = Path(SWIFT).resolve()
    libraries = f"{root}/usr/lib/x86_64-linux-gnu:{root}/usr/libexec/swift/lib/swift/linux"
    program = tmp_path_factory.mktemp("program") / "run_session"
    loader = f"{root}/lib64/ld-linux-x86-64.so.2 --library-path {libraries}"
    program.write_text(f'#!/bin/sh\nMOTE_COREAI_RUNTIME={swift} exec {loader} {RUN_SESSION} "$@"\n')
    program.chmod(0o755)
    return program


# Those that a library can have: a call that returns an error, or numbers that are none.
FAULTS = [None, *(f"predict:{fault}:{call}" for fault in ("error", "nan") for call in (1, 2, 8, 30)), "write:error:3"]


@pytest.mark.parametrize("units", ["cpu", "gpu", "ane"])
def test_units_are_asked_for(file, units):
    assert_same(session_lines(file, "coreai", MOTE_COREAI_UNITS=units), session_lines(file, "cpu"))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_session_goes_on_on_the_cpu(file, fault):
    environment = {} if fault is None else {"MOTE_FAKE_FAULT": fault}
    assert_same(session_lines(file, "coreai", "cpu", **environment), session_lines(file, "cpu"))


@pytest.mark.parametrize("fault", FAULTS)
def test_by_what_swift_compiles(file, fault, swift_program, monkeypatch):
    monkeypatch.setattr("tests.backends.models.RUN_SESSION", swift_program)
    environment = {} if fault is None else {"MOTE_FAKE_FAULT": fault}
    assert_same(session_lines(file, "coreai", "cpu", **environment), session_lines(file, "cpu"))


def test_units_by_what_swift_compiles(file, swift_program, monkeypatch):
    monkeypatch.setattr("tests.backends.models.RUN_SESSION", swift_program)
    assert_same(session_lines(file, "coreai", MOTE_COREAI_UNITS="ane"), session_lines(file, "cpu"))


@pytest.mark.parametrize("name", ["gemma2", "lfm2"])
def test_other_states(name, carries, tmp_path):
    file = export(tmp_path, name, backend="coreai", kind=COREAI, carries=carries)
    assert_same_where_both_say(session_lines(file, "coreai", "cpu"), session_lines(file, "cpu"))


def refusal(file: Path, **environment: str) -> str:
    run = [RUN_SESSION, file, "coreai", file.parent]
    result = subprocess.run(run, env=os.environ | environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 1, result.stdout
    return result.stderr.strip()


def test_units_that_there_are_not(file):
    assert "MOTE_COREAI_UNITS = 'npu': must be all, cpu, gpu or ane" in refusal(file, MOTE_COREAI_UNITS="npu")


def test_a_function_that_an_asset_has_not(file, tmp_path):
    copy = shutil.copytree(file.parent, tmp_path / "copy")
    (copy / "model.aimodel/decode.json").unlink()
    assert "Core AI cannot load function decode" in refusal(copy / "model.mote")


def test_an_asset_is_of_the_kind_that_is_exported():
    assert (ASSET.suffix, ASSET.files) == (COREAI.suffix, COREAI.files)
