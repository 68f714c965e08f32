"""Every op alone, run by Apple's interpreter, against PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from backends.coreai.lowering import OPS
from tests.backends.coreai.cases import CASES
from tests.backends.coreai.runs import ROOT

TOLERANCE = 1e-5  # of the largest difference, relative to the largest expected number
# Made of nothing, or moves nothing: whole models have them.
ELSEWHERE = {"aten.unsqueeze", "aten.squeeze", "aten.clone", "aten.full", "aten.arange", "aten.max"}


@pytest.fixture(scope="module")
def found(coreai, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("ops")
    run = [sys.executable, "-m", "tests.backends.coreai.cases", str(folder)]
    result = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert any(folder.glob("*.npz")), result.stderr[-3000:]
    return folder


@pytest.mark.parametrize("name", CASES)
def test_op(name, found):
    case = CASES[name]
    outputs = list(np.load(found / f"{name}.npz").values())
    for output, expected in zip(outputs, case.expected(), strict=True):
        made = torch.from_numpy(output)
        assert made.shape == expected.shape
        if not expected.is_floating_point():
            assert torch.equal(made.to(expected.dtype), expected)
            continue
        error = (made - expected).abs().max() / expected.abs().max()
        assert error <= TOLERANCE, float(error)


def test_every_op_has_a_case():
    tried = {instruction.op for case in CASES.values() for instruction in case.part.subgraph.method.instructions}
    assert set(OPS) - tried == ELSEWHERE
