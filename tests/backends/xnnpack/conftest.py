from __future__ import annotations

import os
from pathlib import Path

import pytest

from backends.xnnpack.library import find_library


@pytest.fixture(scope="session")
def xnnpack() -> None:
    """XNNPACK's library can be loaded."""
    library = os.environ.get("MOTE_XNNPACK_LIBRARY") or find_library()
    if library is None:
        pytest.skip("no XNNPACK: pip install --no-deps executorch brings one")
    os.environ["MOTE_XNNPACK_LIBRARY"] = str(library)


@pytest.fixture(scope="session")
def demo_checkpoint() -> Path:
    return Path(__file__).parents[3] / "examples" / "demo"
