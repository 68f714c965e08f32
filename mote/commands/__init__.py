"""What the verbs of `mote` do, a file each."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

RUNNER_NAME = "mote-runner"


def version_text() -> str:
    """Returns `mote`, its version and, in further lines, what the runner says of its build."""
    try:
        said = subprocess.run([runner_binary(), "--version"], capture_output=True, text=True, check=False).stdout
    except Exception:  # a version is told also of an installation that is not whole
        said = ""
    return "\n".join([f"mote {version('mote-llm')}", *said.splitlines()[1:]])


def runner_binary() -> Path:
    """Finds `mote-runner`: in the package llm_runner, or on the PATH.

    Errors: FileError if it is nowhere
    """
    # The package itself is not imported: that would load its C++ library for nothing.
    spec = importlib.util.find_spec("llm_runner")
    for location in (spec.submodule_search_locations or []) if spec else []:
        if (binary := Path(location) / "bin" / RUNNER_NAME).is_file():
            return binary
    found = shutil.which(RUNNER_NAME)
    if found is None:
        from llm_runner.errors import FileError  # imports the runner's library, which forwarding a verb does not need

        raise FileError(f"{RUNNER_NAME} is not installed: it comes with 'pip install mote-llm'")
    return Path(found)
