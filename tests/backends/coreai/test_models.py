"""Whole models as Core AI assets, run by Apple's interpreter: the logits of the CPU's kernels."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from backends.coreai.lowering import CoreaiBackend
from llm_export import api
from tests.backends.coreai.runs import in_a_process
from tests.backends.models import ALL
from tests.backends.tensor_ops.sessions import (
    CONTEXT,
    COUNTS,
    MAX_RELATIVE_ERROR,
    PREFILL,
    errors,
    export,
    ids_of,
    on_the_cpu,
)
from tests.contracts.draft_heads import save_with_head

# Some of each family.
SOME = ["gpt_oss", "lfm2_moe"]
TYPES = ALL if os.environ.get("MOTE_TEST_ALL_TYPES") else SOME


@pytest.fixture(scope="module")
def results(coreai, demo, demo_cpu, tmp_path_factory) -> dict[str, tuple[dict[str, np.ndarray], np.ndarray]]:
    """What Core AI and the CPU give for each model. One process runs all: to start one takes longer than to run one."""
    files = {"demo": (demo_cpu, demo)}
    for name in TYPES:
        files[name] = export(name, tmp_path_factory.mktemp(name), CoreaiBackend(CONTEXT, COUNTS))
    texts = [(ids_of(160, 4000), 150) if name == "demo" else (ids_of(15), PREFILL) for name in files]
    given = list(zip(files.values(), texts, strict=True))
    found = in_a_process([{"file": asset, "ids": ids, "prefill": count} for (_, asset), (ids, count) in given])
    expected = (on_the_cpu(cpu, ids, count) for (cpu, _), (ids, count) in given)
    return dict(zip(files, zip(found, expected, strict=False), strict=False))


@pytest.mark.parametrize("name", TYPES)
def test_the_same_logits_as_on_the_cpu(name, results):
    found, expected = results[name]
    assert errors(found["logits"], expected) <= MAX_RELATIVE_ERROR
    assert errors(found["again"], expected[-found["again"].shape[0] :]) <= MAX_RELATIVE_ERROR


@pytest.fixture(scope="module")
def demo(coreai, demo_files) -> Path:
    """The demo model by the plain command, checked against PyTorch."""
    return demo_files.path("4w", "coreai")


@pytest.fixture(scope="module")
def demo_cpu(demo_files) -> Path:
    return demo_files.path("4w", check="off")


def test_the_demo_model(results):
    """Prompts in calls of 16 and 128 tokens, one that is filled up, single tokens, and back."""
    found, expected = results["demo"]
    assert errors(found["logits"], expected) <= MAX_RELATIVE_ERROR
    assert errors(found["again"], expected) <= MAX_RELATIVE_ERROR
    assert (found["logits"].argmax(-1) == expected.argmax(-1)).all()


def test_weights_are_there_once(demo, demo_cpu):
    """The asset holds them, the file what tells of them; the CPU's file holds as much as both."""
    cpu = demo_cpu.stat().st_size
    asset = sum(part.stat().st_size for part in demo.with_suffix(".aimodel").rglob("*") if part.is_file())
    assert asset < 1.15 * cpu and demo.stat().st_size < 0.3 * cpu


def test_a_head_for_multi_token_prediction_is_left_out(coreai, tmp_path):
    save_with_head("qwen3_5_text", tmp_path / "checkpoint")
    backends = [CoreaiBackend(CONTEXT, COUNTS)]
    report = api.export(
        tmp_path / "checkpoint", tmp_path / "m.mote", backends=backends, recipe="none", check="off", tokenizer=False
    )
    assert any("without the head for multi-token prediction" in note and "coreai" in note for note in report.notes)
    assert {method for _, method in report.num_delegated} == {"decode", "prefill[4]", "verify[4]"}
