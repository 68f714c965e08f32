from __future__ import annotations

import os
from pathlib import Path

import pytest

from llm_export.api import ExportReport
from mote.libraries import XNNPACK
from tests.demo import CHECKPOINT


@pytest.fixture(scope="session")
def library() -> Path | str | None:
    """XNNPACK's library, which this process then finds."""
    found = os.environ.get("MOTE_XNNPACK_LIBRARY") or XNNPACK.find()
    if found is not None:
        os.environ["MOTE_XNNPACK_LIBRARY"] = str(found)
    return found


@pytest.fixture(scope="session")
def xnnpack(library) -> None:
    """XNNPACK's library can be loaded."""
    if library is None:
        pytest.skip("no XNNPACK: pip install --no-deps executorch brings one")


@pytest.fixture(scope="session")
def checked_report(library, demo_files) -> ExportReport:
    """The demo model for XNNPACK and the CPU, checked on both where there is a library."""
    return demo_files.report(backends="xnnpack,cpu")


@pytest.fixture(scope="session")
def demo_checkpoint() -> Path:
    return CHECKPOINT
