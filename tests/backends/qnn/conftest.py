"""Qualcomm's library is used where somebody who has accepted its licence names it: else these tests are skipped."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session")
def qnn() -> None:
    if not os.environ.get("MOTE_QNN_LIBRARIES"):
        pytest.skip("MOTE_QNN_LIBRARIES does not name the folder of Qualcomm's libraries")
