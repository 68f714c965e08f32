from __future__ import annotations

import subprocess

import pytest

from tests.backends.parts import NO_DEVICE, RUN_PART


@pytest.fixture(scope="session")
def vulkan() -> None:
    """A device of Vulkan is there: on Debian and Ubuntu the package mesa-vulkan-drivers brings one that is the CPU."""
    if not RUN_PART.exists():
        pytest.skip(f"{RUN_PART} is not built: build the C++ tests")
    probe = subprocess.run([RUN_PART, "vulkan"], input=b"", capture_output=True, text=False)
    if probe.returncode == NO_DEVICE:
        pytest.skip(probe.stdout.decode().strip())
