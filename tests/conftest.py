"""Settings of all tests."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.demo import DemoFiles, shared_folder

ROOT = Path(__file__).parent

# One run is like the other; MOTE_TEST_RANDOM=1 draws other examples each time.
settings.register_profile("mote", derandomize="MOTE_TEST_RANDOM" not in os.environ)
settings.load_profile("mote")


@pytest.fixture(scope="session", autouse=True)
def shared_captures():
    """Exports of one checkpoint share its capture, in every test that has imported the exporter."""
    api = sys.modules.get("llm_export.api")
    if api is None:
        yield
        return
    from tests.captures import captured

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "capture", captured)
        yield


@pytest.fixture(scope="session")
def demo_files(tmp_path_factory) -> DemoFiles:
    """The demo model as files, each exported once for all workers of pytest-xdist."""
    return DemoFiles(shared_folder(tmp_path_factory.getbasetemp()))


# Folders whose groups take longest: a worker that began one of them last would run it alone.
LONGEST = ("real_model", "backends")


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Says what pytest-xdist's workers share: tests of one architecture its capture, tests of one file its fixtures."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(ROOT).with_suffix(""))))
    items.sort(key=lambda item: item.path.relative_to(ROOT).parts[0] not in LONGEST)


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Shows a failure at once: a run that is cut off has no summary."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\n{report.nodeid}: {report.when}\n{report.longreprtext}", flush=True)
