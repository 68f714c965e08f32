"""Where a Python environment has an XNNPACK that the runner can load. Imports nothing heavy."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

VARIABLE = "MOTE_XNNPACK_LIBRARY"
NAMES = ("libexecutorch_backend_xnnpack.so", "libexecutorch_backend_xnnpack.dylib")


def find_library() -> Path | None:
    """Returns the library inside an installed `executorch`, for MOTE_XNNPACK_LIBRARY. Imports nothing of it."""
    spec = importlib.util.find_spec("executorch")
    folders = [] if spec is None else [Path(folder) for folder in spec.submodule_search_locations or ()]
    return next((path for folder in folders for name in NAMES if (path := folder / "lib" / name).is_file()), None)


def name_library() -> None:
    """Has the runner find that library, unless the user named one."""
    found = None if VARIABLE in os.environ else find_library()
    if found is not None:
        os.environ[VARIABLE] = str(found)
