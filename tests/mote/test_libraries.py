"""Libraries of installed packages are named to the runner, where no other is and their licence allows it."""

from __future__ import annotations

import os

import pytest

from mote.libraries import QNN, XNNPACK, name_libraries


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Both packages, of which no module may be imported, first on the path."""
    for library in (XNNPACK, QNN):
        path = tmp_path / library.package / library.paths[0]
        path.parent.mkdir(parents=True)
        path.write_text("a library")
        (tmp_path / library.package / "__init__.py").write_text("raise AssertionError")
    for variable in (XNNPACK.variable, QNN.variable, QNN.licence):
        monkeypatch.setenv(variable, "")  # so that what a test sets goes with it
        monkeypatch.delenv(variable)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_names_what_packages_have(packages, monkeypatch):
    name_libraries()
    assert os.environ.get("MOTE_XNNPACK_LIBRARY") == str(packages / "executorch/lib/libexecutorch_backend_xnnpack.so")
    assert os.environ.get("MOTE_QNN_LIBRARIES") is None  # nobody has accepted its licence
    monkeypatch.setenv("MOTE_QNN_LICENCE", "1")
    name_libraries()
    assert os.environ.get("MOTE_QNN_LIBRARIES") is None
    monkeypatch.setenv("MOTE_QNN_LICENCE", "accepted")
    name_libraries()
    assert os.environ.get("MOTE_QNN_LIBRARIES") == str(packages / "onnxruntime_qnn")


def test_what_the_user_names_goes_first(packages, monkeypatch):
    monkeypatch.setenv("MOTE_QNN_LICENCE", "accepted")
    monkeypatch.setenv("MOTE_QNN_LIBRARIES", "/mine")
    monkeypatch.setenv("MOTE_XNNPACK_LIBRARY", "")
    name_libraries()
    assert os.environ.get("MOTE_QNN_LIBRARIES") == "/mine" and os.environ.get("MOTE_XNNPACK_LIBRARY") == ""


def test_a_package_without_the_library(packages):
    (packages / "executorch/lib/libexecutorch_backend_xnnpack.so").unlink()
    assert XNNPACK.find() is None
