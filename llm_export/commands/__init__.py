"""What the verbs of `mote` do, a file each."""

from __future__ import annotations

import importlib.util
import shutil
import sysconfig
from pathlib import Path

RUNNER_NAME = "mote-runner"


def runner_binary() -> Path:
    """Finds `mote-runner`: installed beside `mote`, in the package llm_runner, or on the PATH.

    Errors: FileError if it is nowhere
    """
    # The package itself is not imported: that would load its C++ library for nothing.
    spec = importlib.util.find_spec("llm_runner")
    packages = [Path(location) / "bin" for location in (spec.submodule_search_locations or [])] if spec else []
    for folder in (Path(sysconfig.get_path("scripts")), *packages):
        if (folder / RUNNER_NAME).is_file():
            return folder / RUNNER_NAME
    found = shutil.which(RUNNER_NAME)
    if found is None:
        from llm_export.errors import FileError  # imports the runner's library, which forwarding a verb does not need

        raise FileError(
            f"{RUNNER_NAME} is not installed: it is part of the package llm_runner; install with 'pip install .'"
        )
    return Path(found)
