"""Whole models as Core ML packages, computed from what was saved: the logits of the CPU's kernels."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from backends.coreml.lowering import CoremlBackend
from backends.coreml.vendor import WEIGHTS
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
)

# Largest |a - b| over largest |b|: now and then a key is between two float16, and both sides take another one.
MAX_RELATIVE_ERROR = 5e-4
LARGER = {"gemma4_unified_text": 1e-3}  # rounding all of its keys to float16 moves its logits by 2e-3
# Without them the demo model, and one with tensors of six axes, stand for all: ops have tests of their own, and Core
# AI's have types for what both share.
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
def demo(coreml, demo_files) -> Path:
    """The demo model by the plain command, checked against PyTorch."""
    return demo_files.path("4w", "coreml")


def test_the_demo_model(demo, demo_files):
    """Prompts in calls of 16 and 128 tokens, one that is filled up, single tokens, and back."""
    cpu = demo_files.path("4w", check="off")
    assert max(compared(cpu, demo, ids_of(160, 4000), 150)) <= MAX_RELATIVE_ERROR
    # The package holds the weights, the file what tells of them.
    weights = (demo.with_suffix(".mlpackage") / WEIGHTS).stat().st_size
    assert weights < 1.25 * cpu.stat().st_size and demo.stat().st_size < 0.3 * cpu.stat().st_size
