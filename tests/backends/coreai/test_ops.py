"""Every op alone, run by Apple's interpreter, against PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.backends.coreai.runs import ROOT
from tests.backends.tensor_ops.cases import CASES, check


@pytest.fixture(scope="module")
def found(coreai, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("ops")
    run = [sys.executable, "-m", "tests.backends.coreai.run_cases", str(folder)]
    result = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert any(folder.glob("*.npz")), result.stderr[-3000:]
    return folder


@pytest.mark.parametrize("name", CASES)
def test_op(name, found):
    check(name, list(np.load(found / f"{name}.npz").values()))
