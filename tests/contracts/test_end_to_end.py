"""Every model type, from a checkpoint on disk through the exported file and the C++ runner, against Hugging Face eager."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from llm_export.api import export
from llm_runner import Model
from tests.contracts.architectures import ROWS, Row, save_tiny_checkpoint, tiny_model

PREFILL, CHUNK, DECODE, VERIFY = 7, 3, 8, 4
CALLS = [3, 3, 1] + [1] * DECODE + [VERIFY]
MAX_RELATIVE_ERROR = 1e-4


def parameters(rows: list[Row]):
    for row in rows:
        marks = pytest.mark.xfail(reason=row.failure, strict=True) if row.failure else ()
        yield pytest.param(row, id=row.name, marks=marks)


@torch.no_grad()
def eager_logits(row: Row, ids: list[int]) -> np.ndarray:
    """Returns float32 [len(ids), vocab_size] of the Hugging Face module."""
    model = tiny_model(row)
    tokens = torch.tensor([ids])
    if not row.same_calls:
        return model(tokens, use_cache=False).logits[0].float().numpy()
    cache, pieces, start = None, [], 0
    for count in CALLS:
        output = model(tokens[:, start : start + count], past_key_values=cache, use_cache=True)
        cache, start = output.past_key_values, start + count
        pieces.append(output.logits[0].float())
    return torch.cat(pieces).numpy()


def runner_logits(path, ids: list[int]) -> tuple[list[int], np.ndarray]:
    """Returns the positions whose logits the runner gives, and those logits."""
    with Model.load(path) as model, model.session(context_length=len(ids), threads=1, prefill_chunk=CHUNK) as session:
        rows = [session.prefill(ids[:PREFILL])]
        rows += [session.decode(id) for id in ids[PREFILL : PREFILL + DECODE]]
        rows += list(session.verify(ids[PREFILL + DECODE :]))
    return list(range(PREFILL - 1, len(ids))), np.stack(rows)


@pytest.mark.parametrize("row", parameters(ROWS))
def test_logits_equal_hugging_face(row: Row, tmp_path):
    torch.set_num_threads(1)
    save_tiny_checkpoint(row.name, tmp_path / "checkpoint")
    path = tmp_path / "model.mote"
    export(tmp_path / "checkpoint", path, recipe="none", check="off")
    ids = torch.randint(3, 120, (sum(CALLS),), generator=torch.Generator().manual_seed(1)).tolist()
    positions, logits = runner_logits(path, ids)
    expected = eager_logits(row, ids)[positions]
    error = np.abs(logits - expected).max() / np.abs(expected).max()
    assert error <= MAX_RELATIVE_ERROR, f"{row.name}: relative error {error:.2e}"
