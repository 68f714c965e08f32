"""Whole models as Core AI assets, run by Apple's interpreter: the logits of the CPU's kernels."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from backends.coreai.lowering import CoreaiBackend
from llm_export import api
from llm_runner import Model
from tests.backends.coreai.runs import in_a_process, rows
from tests.backends.models import ALL
from tests.contracts.architectures import save_tiny_checkpoint

MAX_RELATIVE_ERROR = 2e-3  # largest |a - b| over largest |b|
COUNTS = (4,)  # of the calls of prompts

# Some of each family.
SOME = ["llama", "qwen3", "gemma2", "gpt2", "gpt_oss", "lfm2_moe"]
TYPES = ALL if os.environ.get("MOTE_TEST_ALL_TYPES") else SOME


def ids_of(count: int, vocabulary: int = 120) -> list[int]:
    return torch.randint(3, vocabulary, (count,), generator=torch.Generator().manual_seed(1)).tolist()


def on_the_cpu(path: Path, ids: list[int]) -> np.ndarray:
    options = {"context_length": len(ids), "threads": 2, "prefill_chunk": 4, "kv_dtype": "float32"}
    with Model.load(path, backend="cpu") as model, model.session(**options) as session:
        return rows(session, ids)


def errors(found: np.ndarray, expected: np.ndarray) -> float:
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def export(name: str, folder: Path, recipe: str) -> tuple[Path, Path]:
    """The same checkpoint for the CPU and for Core AI."""
    save_tiny_checkpoint(name, folder / "checkpoint")
    cpu, coreai = folder / "cpu.mote", folder / "coreai.mote"
    api.export(folder / "checkpoint", cpu, check="off", recipe=recipe)
    report = api.export(
        folder / "checkpoint", coreai, backends=[CoreaiBackend(64, COUNTS)], check="off", recipe=recipe
    )
    assert not report.refusals, {(refusal.op, refusal.reason) for refusal in report.refusals}
    assert all(taken == total for taken, total in report.num_delegated.values())
    return cpu, coreai


@pytest.fixture(scope="module")
def results(coreai, tmp_path_factory) -> dict[str, tuple[dict[str, np.ndarray], np.ndarray]]:
    """What Core AI and the CPU give for each type. One process runs all: to start one takes longer than to run one."""
    ids, files = ids_of(15), {}
    for name in TYPES:
        files[name] = export(name, tmp_path_factory.mktemp(name), "4w")
    found = in_a_process([{"file": asset, "ids": ids} for _, asset in files.values()])
    expected = (on_the_cpu(cpu, ids) for cpu, _ in files.values())
    return dict(zip(files, zip(found, expected, strict=False), strict=False))


@pytest.mark.parametrize("name", TYPES)
def test_the_same_logits_as_on_the_cpu(name, results):
    found, expected = results[name]
    assert errors(found["logits"], expected) <= MAX_RELATIVE_ERROR
    assert errors(found["again"], expected[-found["again"].shape[0] :]) <= MAX_RELATIVE_ERROR
