"""Every model type, from a checkpoint on disk through the exported file and the C++ runner, against Hugging Face eager.

Types that are expected to fail are in test_capture.py, where each must be refused in a sentence.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from llm_export.api import export
from llm_runner import Model
from tests.contracts.architectures import ROWS, Row, save_tiny_checkpoint
from tests.contracts.reference import reference_logits

PREFILL, CHUNK, DECODE, VERIFY = 7, 4, 8, 4
CALLS = [4, 3] + [1] * DECODE + [VERIFY]
MAX_RELATIVE_ERROR = 1e-4


def runner_logits(path, ids: list[int]) -> tuple[list[int], np.ndarray]:
    """Returns the positions whose logits the runner gives, and those logits."""
    with Model.load(path) as model, model.session(context_length=len(ids), threads=1, prefill_chunk=CHUNK) as session:
        rows = [session.prefill(ids[:PREFILL])]
        rows += [session.decode(id) for id in ids[PREFILL : PREFILL + DECODE]]
        rows += list(session.verify(ids[PREFILL + DECODE :]))
    return list(range(PREFILL - 1, len(ids))), np.stack(rows)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.failure], ids=lambda row: row.name)
def test_logits_equal_hugging_face(row: Row, tmp_path):
    torch.set_num_threads(1)
    save_tiny_checkpoint(row.name, tmp_path / "checkpoint")
    path = tmp_path / "model.mote"
    export(tmp_path / "checkpoint", path, recipe="none", check="off")
    ids = torch.randint(3, 120, (sum(CALLS),), generator=torch.Generator().manual_seed(1)).tolist()
    positions, logits = runner_logits(path, ids)
    expected = reference_logits(tmp_path / "checkpoint", row, torch.tensor([ids]), CALLS)[0, positions].numpy()
    error = np.abs(logits - expected).max() / np.abs(expected).max()
    assert error <= MAX_RELATIVE_ERROR, f"{row.name}: relative error {error:.2e}"
