"""Where a Python environment has libraries that the runner opens at run time. Imports nothing of their packages."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

ACCEPTED = "accepted"


@dataclass(frozen=True)
class Library:
    """variable: that names it to the runner: the file, or its folder if has_folder
    paths: in the package's folder, the first that is there
    licence: a variable that a person sets to ACCEPTED before it is used; empty: it needs none
    """

    variable: str
    package: str
    paths: tuple[str, ...]
    has_folder: bool = False
    licence: str = ""

    def find(self) -> Path | None:
        """Returns what an installed package has of it."""
        spec = importlib.util.find_spec(self.package)
        folders = [] if spec is None else [Path(folder) for folder in spec.submodule_search_locations or ()]
        found = next((path for folder in folders for name in self.paths if (path := folder / name).is_file()), None)
        return found.parent if found is not None and self.has_folder else found


XNNPACK = Library(
    "MOTE_XNNPACK_LIBRARY",
    "executorch",
    ("lib/libexecutorch_backend_xnnpack.so", "lib/libexecutorch_backend_xnnpack.dylib"),
)
QNN = Library("MOTE_QNN_LIBRARIES", "onnxruntime_qnn", ("libQnnHtp.so",), has_folder=True, licence="MOTE_QNN_LICENCE")


def name_libraries() -> None:
    """Has the runner find those that the user has not named."""
    for library in (XNNPACK, QNN):
        may_use = not library.licence or os.environ.get(library.licence) == ACCEPTED
        found = library.find() if may_use and library.variable not in os.environ else None
        if found is not None:
            os.environ[library.variable] = str(found)
