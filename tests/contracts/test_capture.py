"""Captures a tiny checkpoint of every model type and compares the graph, run in eager PyTorch, with the HF module."""

from __future__ import annotations

import pytest
import torch

from llm_export.capture import capture
from llm_export.checkpoint import open_checkpoint
from llm_export.eager import EagerProgram
from llm_export.errors import UnsupportedError
from llm_export.lowering import lower
from llm_export.passes import run_passes
from tests.contracts.architectures import ROWS, generators, save_tiny_checkpoint
from tests.contracts.reference import reference_logits

CALLS = [7, 1, 1, 1, 1, 1, 1, 1, 1, 4]  # prefill, decode steps, verify
TOLERANCE = 1e-4  # largest |a - b| over largest |b|


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def input_ids() -> torch.Tensor:
    return torch.randint(0, 128, (1, sum(CALLS)), generator=torch.Generator().manual_seed(1))


def captured_logits(folder) -> torch.Tensor:
    checkpoint = open_checkpoint(folder)
    program = EagerProgram(capture(checkpoint), checkpoint.weights.read)
    return torch.cat([program.run("verify", piece) for piece in input_ids().split(CALLS, dim=1)], dim=1)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.failure], ids=lambda row: row.name)
def test_captured_graph_computes_what_the_module_computes(row, tmp_path):
    save_tiny_checkpoint(row.name, tmp_path)
    expected = reference_logits(tmp_path, row, input_ids(), CALLS)
    error = (captured_logits(tmp_path) - expected).abs().max() / expected.abs().max()
    assert error < TOLERANCE


def test_every_generator_has_one_row():
    names = [row.model_type for row in ROWS if not row.variant]
    assert sorted(names) == sorted(generators())


# blt's parts have configs of their own, which make it too large for a test.
REFUSED = [row for row in ROWS if row.failure and row.model_type != "blt"]


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row.name)
def test_types_that_are_expected_to_fail_are_refused_in_a_sentence(row, tmp_path):
    save_tiny_checkpoint(row.name, tmp_path)
    with pytest.raises(UnsupportedError, match=row.model_type):
        lower(run_passes(capture(open_checkpoint(tmp_path))), row.model_type)
