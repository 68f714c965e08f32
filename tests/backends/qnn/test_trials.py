"""QNN is tried with a file's golden samples before it is trusted, and set aside with the reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from backends.qnn.lowering import QnnBackend
from llm_export import api
from tests.backends.parts import ROOT
from tests.contracts.architectures import save_tiny_checkpoint

BUILD = ROOT / "build/dev/tests/backends"
FAULTY = Path(os.environ.get("MOTE_TEST_QNN_FAULTY", BUILD / "qnn/libQnnHtp.so"))
RUN_CHOICE = Path(os.environ.get("MOTE_RUN_ASSET_FAULTS", BUILD / "assets/run_asset_faults")).with_name(
    "run_asset_choice"
)
RUN_FAULTS = FAULTY.with_name("run_qnn_faults")
pytestmark = pytest.mark.skipif(not FAULTY.exists(), reason="the build has no library for this")


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    """Checked, so that it has golden samples; without Qualcomm's library."""
    folder = tmp_path_factory.mktemp("trials")
    save_tiny_checkpoint("llama", folder / "checkpoint")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MOTE_QNN_LIBRARIES", raising=False)
        api.export(folder / "checkpoint", folder / "model.mote", backends=[QnnBackend(64, (8,)), "cpu"], recipe="none")
    return folder / "model.mote"


@pytest.fixture(autouse=True)
def untried(file):
    for kept in file.parent.glob("model.mote.qnn-*"):
        kept.unlink()


def described(file: Path, backend: str = "qnn", **environment: str) -> dict | str:
    """What a process says of the file that it has loaded, or why it has not."""
    environment = {"MOTE_QNN_LIBRARIES": str(FAULTY.parent)} | environment
    run = [RUN_CHOICE, file, backend]
    result = subprocess.run(run, env=os.environ | environment, capture_output=True, text=True, timeout=1200)
    if result.returncode != 0:
        return result.stderr.splitlines()[-1] if result.stderr else ""
    return json.loads(next(line for line in result.stdout.splitlines() if line.startswith("{")))


def test_wrong_numbers_are_seen(file):
    """By a library that gives zeros."""
    said = described(file)
    assert "QNN of zeros sm8750 was tried with this file and failed: its logits are not those of PyTorch" in said
    (verdict,) = file.parent.glob("model.mote.qnn-verdict-*")
    # A process that comes later asks the library nothing.
    assert described(file, MOTE_TEST_QNN_FAULT="execute:death:1") == said
    verdict.unlink()
    assert described(file, MOTE_TEST_QNN_FAULT="execute:death:1") == ""


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("compile:error:2", "QNN could not compile a graph: error 6001"),
        ("compile:hang:1", "QNN did not answer when it was to compile a graph"),
        ("execute:error:1", "QNN could not run a graph: error 6001"),
        ("execute:nan:1", "QNN gave what is no number"),
        ("execute:hang:1", "QNN did not answer when it was to run a graph"),
    ],
)
def test_what_fails_is_set_aside(file, fault, reason):
    said = described(file, MOTE_TEST_QNN_FAULT=fault, MOTE_QNN_PATIENCE="1")
    assert "was tried with this file and failed" in said and reason in said
    assert described(file) == said


def test_a_process_that_dies_is_remembered(file):
    for _ in range(2):
        assert described(file, MOTE_TEST_QNN_FAULT="execute:death:1") == ""
    assert "processes that tried it did not come to an end" in described(file)


def test_faults_leave_the_text_as_it_is(file):
    """MOTE_TEST_FAULTS: how many"""
    count = os.environ.get("MOTE_TEST_FAULTS", "200")
    run = [RUN_FAULTS, file, FAULTY.parent, count]
    result = subprocess.run(run, capture_output=True, text=True, timeout=3000)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == f"{count} faults"


def test_other_patience_is_refused(file):
    for wrong in ("0", "1s", "-1", "86401"):
        assert f"MOTE_QNN_PATIENCE = {wrong}: must be 1 to 86400 seconds" in described(file, MOTE_QNN_PATIENCE=wrong)


def in_simulator(**environment: str) -> dict[str, str]:
    library = Path(os.environ["MOTE_QNN_LIBRARIES"]) / "libQnnHtp.so"
    return {"MOTE_QNN_LIBRARIES": str(FAULTY.parent), "MOTE_TEST_QNN_LIBRARY": str(library)} | environment


def test_what_works_is_said(file, qnn):
    found = described(file, **in_simulator())
    assert found["target"] == "qnn"
    assert "tried with this file: " in str(found["findings"]) and " ms a token" in str(found["findings"])


def test_wrong_numbers_of_later_calls_are_seen(file, qnn):
    said = described(file, **in_simulator(MOTE_TEST_QNN_FAULT="execute:wrong:3"))
    assert "its logits are not those of PyTorch" in said


ROWS = """
import json, sys
from llm_runner import Model
with Model.load(sys.argv[1], backend=sys.argv[2]).session() as session:
    rows = [session.prefill(list(range(3, 20))).tolist()]
    rows += [session.decode(id).tolist() for id in range(20, 30)]
    print()
    print(json.dumps([session.backend, session.moved_because or "", rows]))
"""


def rows(file: Path, backend: str, **environment: str) -> tuple[str, str, list[list[float]]]:
    """In a process of its own: a library stays once found."""
    run = [sys.executable, "-c", ROWS, file, backend]
    result = subprocess.run(run, env=os.environ | environment, capture_output=True, text=True, timeout=1200)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_a_call_that_hangs_later_is_remembered(file):
    """By a library that computes itself."""
    environment = {"MOTE_QNN_LIBRARIES": str(FAULTY.parent), "MOTE_TEST_QNN_LIBRARY": "interpreter"}
    assert described(file, **environment)["target"] == "qnn"
    fault = {"MOTE_TEST_QNN_FAULT": "execute:hang:5", "MOTE_QNN_PATIENCE": "1"}
    backend, why, _ = rows(file, "qnn", **environment, **fault)
    assert backend == "cpu" and "QNN did not answer when it was to run a graph" in why
    assert "failed: QNN did not answer when it was to run a graph" in described(file, **environment)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("error:6", "error 6001"), ("nan:8", "no number"), ("hang:5", "QNN did not answer when it was to run a graph")],
)
def test_later_faults_leave_the_text_as_it_is(file, qnn, fault, reason):
    """The session goes on on the CPU, with its keys and values."""
    assert described(file, **in_simulator())["target"] == "qnn"
    expected = rows(file, "cpu")[2]
    environment = in_simulator(MOTE_TEST_QNN_FAULT=f"execute:{fault}", MOTE_QNN_PATIENCE="20")
    backend, why, got = rows(file, "qnn", **environment)
    assert backend == "cpu" and reason in why
    assert np.abs(np.array(got) - np.array(expected)).max() <= 4e-3 * np.abs(expected).max()
