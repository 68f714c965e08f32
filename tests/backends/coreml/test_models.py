"""Whole models as Core ML packages, computed from what was saved: the logits of the CPU's kernels."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from backends.coreml.lowering import CoremlBackend
from backends.coreml.vendor import MODEL, WEIGHTS
from llm_runner import BackendError, Model
from mote.cli import main
from tests.backends.models import ALL
from tests.backends.tensor_ops.sessions import (
    CONTEXT,
    COUNTS,
    PREFILL,
    errors,
    export,
    ids_of,
    of_model,
    on_the_cpu,
    refusal,
)
from tests.demo import CHECKPOINT

# Largest |a - b| over largest |b|: now and then a key is between two float16, and both sides take another one.
MAX_RELATIVE_ERROR = 5e-4
LARGER = {"gemma4_unified_text": 1e-3}  # rounding all of its keys to float16 moves its logits by 2e-3
# Without them the demo model, and one with tensors of six axes, stand for all: ops have tests of their own, and Core AI's have types for what both share.
TYPES = ALL if os.environ.get("MOTE_TEST_ALL_TYPES") else ["qwen4_exp_text"]


def compared(cpu: Path, file: Path, ids: list[int], prefill: int = PREFILL) -> tuple[np.ndarray, np.ndarray]:
    """Largest errors of the logits, and of those after the session has gone back. Caches are float16 on both sides."""
    expected = on_the_cpu(cpu, ids, prefill, kv_dtype="float16")
    found = of_model(CoremlBackend().open_model(file), ids, prefill)
    again = found["again"]
    return errors(found["logits"], expected), errors(again, expected[-again.shape[0] :])


@pytest.mark.parametrize("name", TYPES)
def test_the_same_logits_as_on_the_cpu(name, coreml, tmp_path):
    cpu, file = export(name, tmp_path, CoremlBackend(CONTEXT, COUNTS))
    assert max(compared(cpu, file, ids_of(15))) <= LARGER.get(name, MAX_RELATIVE_ERROR)


@pytest.fixture(scope="module")
def demo(coreml, tmp_path_factory) -> Path:
    """The demo model by the plain command, checked against PyTorch."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.raises(SystemExit) as ended:
        main(["export", str(CHECKPOINT), "-o", str(folder / "demo.mote"), "--backend", "coreml", "--quiet"])
    assert ended.value.code == 0
    return folder / "demo.mote"


def test_the_demo_model(demo, demo_files):
    """Prompts in calls of 16 and 128 tokens, one that is filled up, single tokens, and back."""
    cpu = demo_files.path("4w", check="off")
    assert max(compared(cpu, demo, ids_of(160, 4000), 150)) <= MAX_RELATIVE_ERROR
    # The package holds the weights, the file what tells of them.
    weights = (demo.with_suffix(".mlpackage") / WEIGHTS).stat().st_size
    assert weights < 1.25 * cpu.stat().st_size and demo.stat().st_size < 0.3 * cpu.stat().st_size


def test_verify_replays_the_samples(demo, capfd):
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(demo), "--backend", "coreml", "--json"])
    report = json.loads(capfd.readouterr().out)
    assert ended.value.code == 0 and report["passed"] and report["target"] == "coreml"
    assert len(report["samples"]) == 2 and all(sample["passed"] for sample in report["samples"])


def test_the_runner_says_that_it_has_no_such_backend(demo):
    with pytest.raises(BackendError, match="coreml: this build has no such backend"):
        Model.load(demo)


def test_a_package_that_was_changed_or_moved_is_refused(demo, tmp_path, capfd):
    file = shutil.copy(demo, tmp_path / "demo.mote")
    package = shutil.copytree(demo.with_suffix(".mlpackage"), tmp_path / "demo.mlpackage")
    for name in (MODEL, WEIGHTS):
        content = (package / name).read_bytes()
        half = len(content) // 2
        (package / name).write_bytes(content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :])
        assert refusal(main, capfd, "verify", file, "--backend", "coreml").endswith(
            "is not the one that it was exported with: export again, or put the right one there"
        )
        (package / name).write_bytes(content)
    shutil.move(package, tmp_path / "other.mlpackage")
    assert refusal(main, capfd, "verify", file, "--backend", "coreml").endswith(
        "demo.mlpackage is not there: keep it beside the file, under this name"
    )
