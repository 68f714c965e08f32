"""Settings of all tests."""

import os

import pytest
from hypothesis import settings

# One run is like the other; MOTE_TEST_RANDOM=1 draws other examples each time.
settings.register_profile("mote", derandomize="MOTE_TEST_RANDOM" not in os.environ)
settings.load_profile("mote")


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Shows a failure at once: a run that is cut off has no summary."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\n{report.nodeid}: {report.when}\n{report.longreprtext}", flush=True)
