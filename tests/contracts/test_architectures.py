"""Every model type on a tiny checkpoint against Hugging Face eager: the captured graph in eager PyTorch, then the
exported file in the C++ runner."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from llm_export import api
from llm_export.capture import capture
from llm_export.capture.eager import EagerProgram
from llm_export.checkpoint import open_checkpoint
from llm_export.errors import UnsupportedError
from llm_export.instructions import lower
from llm_export.passes import run_passes
from llm_runner import Model, ProgramError
from tests.contracts.architectures import ROWS, Row, generators, save_tiny_checkpoint
from tests.contracts.batch import check_batch
from tests.contracts.reference import reference_logits

PREFILL, CHUNK, DECODE, VERIFY = 7, 4, 8, 4
CALLS = [4, 3] + [1] * DECODE + [VERIFY]
MAX_RELATIVE_ERROR = 1e-4  # largest |a - b| over largest |b|


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def graph_logits(program: EagerProgram, ids: list[int]) -> np.ndarray:
    pieces = torch.tensor([ids]).split(CALLS, dim=1)
    return torch.cat([program.run("verify", piece) for piece in pieces], dim=1)[0].numpy()


def runner_logits(path, ids: list[int]) -> np.ndarray:
    """Returns the logits that the runner gives: of the positions from PREFILL - 1 on."""
    with Model.load(path) as model, model.session(context_length=len(ids), threads=1, prefill_chunk=CHUNK) as session:
        rows = [session.prefill(ids[:PREFILL])]
        rows += [session.decode(id) for id in ids[PREFILL : PREFILL + DECODE]]
        rows += list(session.verify(ids[PREFILL + DECODE :]))
    return np.stack(rows)


def relative_error(logits: np.ndarray, expected: np.ndarray) -> float:
    return np.abs(logits - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize("row", [row for row in ROWS if not row.failure], ids=lambda row: row.name)
def test_graph_and_file_compute_what_hugging_face_computes(row: Row, tmp_path, monkeypatch):
    folder, path = tmp_path / "checkpoint", tmp_path / "model.mote"
    save_tiny_checkpoint(row.name, folder)
    ids = torch.randint(3, 120, (sum(CALLS),), generator=torch.Generator().manual_seed(1)).tolist()
    expected = reference_logits(folder, row, torch.tensor([ids]), CALLS)[0].numpy()
    graphs = []  # that the export captures, which takes most of its time

    def capture_once(checkpoint):
        methods = capture(checkpoint)
        graphs.append(EagerProgram(methods, checkpoint.weights.read))
        return methods

    monkeypatch.setattr(api, "capture", capture_once)
    api.export(folder, path, recipe="none", check="off")
    error = relative_error(graph_logits(graphs[0], ids), expected)
    assert error <= MAX_RELATIVE_ERROR, f"{row.name}: graph: relative error {error:.2e}"
    error = relative_error(runner_logits(path, ids), expected[PREFILL - 1 :])
    assert error <= MAX_RELATIVE_ERROR, f"{row.name}: runner: relative error {error:.2e}"
    if row.same_calls:  # the frequencies follow from the call's largest position
        with pytest.raises(ProgramError, match=r"\(aten\.amax, .*\) makes a token's row depend on those of other"):
            check_batch(path, ids)
    else:
        check_batch(path, ids)


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
