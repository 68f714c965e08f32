"""Functions of an asset as a backend of sessions: whatever these do, the text is the CPU's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from llm_runner import Model
from tests.backends.assets.lowering import export
from tests.backends.models import session_lines


def assert_same(got: dict[str, list[float]], expected: dict[str, list[float]]) -> None:
    assert list(got) == list(expected) and len(got) > 40
    for name, numbers in expected.items():
        assert got[name] == pytest.approx(numbers, abs=2e-5), name


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return export(tmp_path_factory.mktemp("asset"))


@pytest.fixture(scope="module")
def file_alone(tmp_path_factory) -> Path:
    """The same without a target to which a session could go."""
    return export(tmp_path_factory.mktemp("asset_alone"), others=())


def test_an_asset_keeps_keys_and_values(file, file_alone):
    assert_same(session_lines(file_alone, "fake"), session_lines(file, "cpu"))
