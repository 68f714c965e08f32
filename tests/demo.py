"""examples/demo as `.mote` files, each exported once for all processes of a test run."""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

if TYPE_CHECKING:
    from llm_export.api import ExportReport

CHECKPOINT = Path(__file__).resolve().parents[1] / "examples" / "demo"


@dataclass(frozen=True)
class DemoFiles:
    """folder: shared by the processes of a run"""

    folder: Path

    def path(self, recipe: str = "8da4w", backends: str = "cpu", check: str | None = None) -> Path:
        """The file of an export with these options, which tests read and do not change."""
        return self.report(recipe, backends, check).path

    def report(self, recipe: str = "8da4w", backends: str = "cpu", check: str | None = None) -> ExportReport:
        """What that export said."""
        name = f"{recipe}-{backends}-{check}"
        done = self.folder / name / "report"
        with FileLock(self.folder / f"{name}.lock"):
            if not done.exists():
                from llm_export.api import export

                done.parent.mkdir(exist_ok=True)
                report = export(CHECKPOINT, done.parent / "demo.mote", recipe=recipe, backends=backends, check=check)
                done.write_bytes(pickle.dumps(report))
        return pickle.loads(done.read_bytes())


def shared_folder(base: Path) -> Path:
    """base: this process's own folder; those of pytest-xdist's workers lie side by side"""
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "demo-files"
    folder.mkdir(exist_ok=True)
    return folder
