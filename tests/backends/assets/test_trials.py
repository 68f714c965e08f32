"""An asset is tried with its golden samples before it is trusted on a device, and set aside with the reason."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.backends.assets.lowering import export
from tests.backends.models import session_lines
from tests.backends.parts import ROOT

RUN_FAULTS = Path(os.environ.get("MOTE_RUN_ASSET_FAULTS", ROOT / "build/dev/tests/backends/assets/run_asset_faults"))
RUN_CHOICE = RUN_FAULTS.with_name("run_asset_choice")


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    """Checked, so that it has golden samples."""
    return export(tmp_path_factory.mktemp("trials"), check="full")


@pytest.fixture(autouse=True)
def untried(file):
    verdict(file).unlink(missing_ok=True)


def verdict(file: Path) -> Path:
    return file.with_name(file.name + ".fake-verdict")


def refusal(file: Path, **environment: str) -> str:
    run = [RUN_CHOICE, file, "fake"]
    result = subprocess.run(run, env=os.environ | environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 1, result.stdout
    (line,) = result.stderr.splitlines()
    return line


def described(file: Path, backend: str, **environment: str) -> dict:
    """What a process says that has loaded the file."""
    run = [RUN_CHOICE, file, backend]
    result = subprocess.run(run, env=os.environ | environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("call", [1, 5, 13])
def test_wrong_numbers_are_seen(file, call):
    said = refusal(file, MOTE_FAKE_FAULT=f"predict:wrong:{call}")
    assert "was tried with this file and failed: its logits are not those of PyTorch: token" in said
    # A process that comes later asks the device nothing.
    assert refusal(file) == said
    verdict(file).unlink()
    assert len(session_lines(file, "fake")) > 40


@pytest.mark.parametrize(
    "fault", ["open:error:1", "make_states:error:1", "predict:error:2", "predict:nan:1", "predict:hang:3"]
)
def test_what_fails_is_set_aside(file, fault):
    assert "was tried with this file and failed" in refusal(file, MOTE_FAKE_FAULT=fault)


def test_a_lack_of_memory_says_nothing_of_a_device(file):
    assert "memory" in refusal(file, MOTE_FAKE_FAULT="predict:memory:2")
    assert len(session_lines(file, "fake")) > 40


def test_another_device_is_tried_anew(file):
    refusal(file, MOTE_FAKE_FAULT="predict:wrong:1")
    assert len(session_lines(file, "fake", MOTE_FAKE_IDENTITY="another build")) > 40


def test_a_process_that_dies_is_remembered(file):
    for _ in range(2):
        run = [RUN_CHOICE, file, "fake"]
        died = subprocess.run(run, env=os.environ | {"MOTE_FAKE_FAULT": "predict:death:2"}, capture_output=True)
        assert died.returncode != 0
    assert "processes that tried it did not come to an end" in refusal(file)


def test_auto_takes_the_cpu_where_it_is_faster(file):
    found = described(file, "auto", MOTE_FAKE_SLOW="40")
    assert found["target"] == "cpu" and "ms a token and the CPU" in found["targets"]["fake"]
    # Whoever names it gets it.
    assert described(file, "fake")["target"] == "fake"


def test_processors_that_were_not_got_are_named(file):
    found = described(file, "fake", MOTE_FAKE_UNITS="neural", MOTE_FAKE_SLOW="40")
    assert "; neural was asked for and seems not to compute: a token takes" in str(found["findings"])
    assert "seems not" not in str(described(file, "fake", MOTE_FAKE_SLOW="40")["findings"])


@pytest.mark.parametrize(
    ("is_there", "reason"),
    [
        (False, "model.fake is not there: keep it beside the file, under this name"),
        (True, "model.fake is not the one that it was exported with: export again, or put the right one there"),
    ],
)
def test_an_asset_that_was_moved_or_changed(file, is_there, reason, tmp_path):
    copy = Path(shutil.copy(file, tmp_path / file.name))
    if is_there:
        shutil.copytree(file.with_suffix(".fake"), copy.with_suffix(".fake"))
        with (copy.with_suffix(".fake") / "model.mote").open("ab") as changed:
            changed.write(b"!")
    assert refusal(copy).endswith(reason)
    found = described(copy, "auto")
    assert found["target"] == "cpu" and found["targets"]["fake"].endswith(reason)


def test_faults_leave_the_text_as_it_is(file):
    """MOTE_TEST_FAULTS: how many"""
    count = os.environ.get("MOTE_TEST_FAULTS", "300")
    result = subprocess.run([RUN_FAULTS, file, count], capture_output=True, text=True, timeout=3000)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == f"{count} faults"
