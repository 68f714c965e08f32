"""Functions of an asset as a backend of sessions: whatever these do, the text is the CPU's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.assets.lowering import export
from tests.backends.models import session_lines


def assert_same(got: dict[str, list[float]], expected: dict[str, list[float]]) -> None:
    assert list(got) == list(expected) and len(got) > 40
    for name, numbers in expected.items():
        assert got[name] == pytest.approx(numbers, abs=2e-5), name


def assert_same_where_both_say(got: dict[str, list[float]], expected: dict[str, list[float]]) -> None:
    """Of targets that do not draft alike."""
    names = [line.split(" ", 1)[1] for line in got]
    of_cpu = dict(zip([line.split(" ", 1)[1] for line in expected], expected.values(), strict=True))
    assert len(names) > 35
    for line, numbers in zip(names, got.values(), strict=True):
        if names.count(line) == 1:
            assert numbers == pytest.approx(of_cpu[line], abs=2e-5), line


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return export(tmp_path_factory.mktemp("asset"))


@pytest.fixture(scope="module")
def file_alone(tmp_path_factory) -> Path:
    """The same without a target to which a session could go."""
    return export(tmp_path_factory.mktemp("asset_alone"), others=())


def test_an_asset_keeps_keys_and_values(file, file_alone):
    assert_same(session_lines(file_alone, "fake"), session_lines(file, "cpu"))


# What fails ahead of position 0, in the middle of prompts and drafts, and where states are copied.
FAULTS = [
    *(f"predict:{fault}:{call}" for fault in ("error", "nan", "hang") for call in (1, 2, 3, 8, 30)),
    *(f"{call}:error:{count}" for call in ("make_states", "read", "write") for count in (1, 2, 5)),
]


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_a_session_goes_on_on_the_cpu(file, fault):
    """Where it is moved, and where the asset's runtime fails."""
    environment = {} if fault is None else {"MOTE_FAKE_FAULT": fault}
    assert_same(session_lines(file, "fake", "cpu", **environment), session_lines(file, "cpu"))


# Windows, layers without states of their own, and recurrent states, which cannot go back and so are not drafted on.
@pytest.mark.parametrize("name", ["gemma2", "gemma3n_text", "gpt_oss", "lfm2", "qwen3_next"])
def test_other_states(name, tmp_path):
    file = export(tmp_path, name)
    assert_same_where_both_say(session_lines(file, "fake", "cpu"), session_lines(file, "cpu"))
