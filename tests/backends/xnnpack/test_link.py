"""CMake's MOTE_XNNPACK: what is linked, and what is said where nothing can be."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mote.libraries import XNNPACK
from tests.backends.parts import ROOT

CMAKE = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
PROJECT = f"""
cmake_minimum_required(VERSION 3.24)
project(uses_xnnpack CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(Threads REQUIRED)
include({ROOT}/backends/xnnpack/link.cmake)
add_executable(uses_xnnpack main.cpp {ROOT}/backends/xnnpack/linked.cpp {ROOT}/base/status.cpp)
target_include_directories(uses_xnnpack PRIVATE {ROOT})
target_link_libraries(uses_xnnpack PRIVATE ${{MOTE_XNNPACK_LINKED}} Threads::Threads)
"""
MAIN = """
#include "backends/xnnpack/library.h"
int main() { return static_cast<int>(mote::xnnpack::find_functions()->api.initialize(nullptr)); }
"""


@pytest.fixture
def project(tmp_path) -> Path:
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    (tmp_path / "main.cpp").write_text(MAIN)
    return tmp_path


@pytest.fixture
def libraries() -> list[Path]:
    """XNNPACK and its pthreadpool."""
    xnnpack = XNNPACK.find()
    if xnnpack is None:
        pytest.skip("executorch is not installed")
    return [xnnpack, xnnpack.with_name("libexecutorch_threadpool" + xnnpack.suffix)]


def configure(project: Path, xnnpack: str, *options: str) -> subprocess.CompletedProcess[str]:
    run = [CMAKE, "-S", project, "-B", project / "build", f"-DMOTE_XNNPACK={xnnpack}", *options]
    return subprocess.run(run, capture_output=True, text=True)


def assert_runs(project: Path) -> None:
    subprocess.run([CMAKE, "--build", project / "build"], check=True, capture_output=True)
    subprocess.run([project / "build" / "uses_xnnpack"], check=True)


def test_links_libraries_that_are_named(project, libraries):
    made = configure(project, ";".join(map(str, libraries)))
    assert made.returncode == 0, made.stderr
    assert_runs(project)


def test_links_libraries_that_are_installed(project, libraries):
    (project / "lib").mkdir()
    for path in libraries[0].parent.glob("lib*"):  # they need each other, by the names that they have
        (project / "lib" / path.name).symlink_to(path)
    for path, name in zip(libraries, ("XNNPACK", "pthreadpool"), strict=True):
        (project / "lib" / f"lib{name}{path.suffix}").symlink_to(path)
    made = configure(project, "ON", f"-DCMAKE_PREFIX_PATH={project}")
    assert made.returncode == 0, made.stderr
    assert_runs(project)


def test_links_a_package_of_cmake(project, libraries):
    linked = ";".join(map(str, libraries))
    package = "add_library(XNNPACK::XNNPACK INTERFACE IMPORTED)\n"
    package += f'set_target_properties(XNNPACK::XNNPACK PROPERTIES INTERFACE_LINK_LIBRARIES "{linked}")\n'
    (project / "XNNPACKConfig.cmake").write_text(package)
    made = configure(project, "ON", f"-DXNNPACK_DIR={project}")
    assert made.returncode == 0, made.stderr
    assert_runs(project)


def test_says_what_is_missing(project, tmp_path):
    assert "/nowhere/libXNNPACK.a: there is no such file" in " ".join(
        configure(project, "/nowhere/libXNNPACK.a").stderr.split()
    )
    nothing = configure(project, "ON", "-DCMAKE_FIND_ROOT_PATH=/nowhere", "-DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY")
    assert "no XNNPACK is installed: add its folder to CMAKE_PREFIX_PATH" in " ".join(nothing.stderr.split())
    (tmp_path / "libXNNPACK.a").write_bytes(b"!<arch>\n")
    assert "lacks xnn_define_static_slice_v3" in " ".join(
        configure(project, str(tmp_path / "libXNNPACK.a")).stderr.split()
    )


def test_libraries_that_were_refused_may_be_replaced(project, libraries, tmp_path):
    (tmp_path / "libXNNPACK.a").write_bytes(b"!<arch>\n")
    assert configure(project, str(tmp_path / "libXNNPACK.a")).returncode != 0
    made = configure(project, ";".join(map(str, libraries)))
    assert made.returncode == 0, made.stderr
