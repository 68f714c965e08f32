"""One version, wherever it is asked for."""

from __future__ import annotations

import re
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import llm_runner
from mote.commands import runner_binary

ROOT = Path(__file__).resolve().parents[2]


def test_the_library_has_the_version_of_the_package():
    assert llm_runner.__version__ == version("mote-llm")


def test_the_runner_tells_what_it_was_built_from():
    name, *lines = subprocess.run([runner_binary(), "--version"], capture_output=True, text=True).stdout.splitlines()
    assert name == f"mote-runner {version('mote-llm')}"
    told = dict(line.split(": ") for line in lines)
    assert list(told) == ["commit", "compiler", "system", "instruction sets", "backends", "line editing"]
    assert re.fullmatch(r"[0-9a-f]{7,}(-dirty)?|unknown", told["commit"])
    assert told["backends"].split(", ")[0] == "cpu"


def test_cmake_reads_the_version_without_a_tag_as_python_does(tmp_path):
    # A tree without git.
    (tmp_path / "cmake").mkdir()
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    script = (ROOT / "cmake" / "MoteVersion.cmake").read_text() + '\nmessage("${MOTE_VERSION} ${MOTE_VERSION_NUMBERS}")'
    (tmp_path / "cmake" / "version.cmake").write_text(script)
    done = subprocess.run(["cmake", "-P", tmp_path / "cmake" / "version.cmake"], capture_output=True, text=True)
    fallback = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools_scm"]["fallback_version"]
    assert done.stderr.split() == [fallback, fallback]
