"""Core ML's package is there for few systems: elsewhere these tests are skipped."""

from __future__ import annotations

import pytest

from backends.coreml.vendor import check_installed
from llm_export.errors import ArgumentError


@pytest.fixture(scope="session")
def coreml() -> None:
    try:
        check_installed()
    except ArgumentError as error:
        pytest.skip(str(error))
