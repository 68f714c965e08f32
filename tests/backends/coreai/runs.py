"""What Apple's interpreter computes, in a process of its own: a type error inside of the package ends the process.

Arguments: a JSON file of jobs, and a folder for what they give.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[3]


def in_a_process(jobs: Sequence[dict]) -> list[dict[str, np.ndarray]]:
    """Each job: {"file": path, "ids": [..], "prefill": of how many, or absent}.

    Returns: what `of_model` gives, of all up to one at which the process ended
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "jobs.json"
        place.write_text(json.dumps([{**job, "file": str(job["file"])} for job in jobs]))
        run = [sys.executable, __file__, str(place), folder]
        result = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=1200)
        places = [Path(folder) / f"{index}.npz" for index in range(len(jobs))]
        found = [dict(np.load(place)) for place in places if place.exists()]
        assert result.returncode == 0 or found, result.stderr[-2000:]
        return found


def of_file(path: Path, **job) -> dict[str, np.ndarray]:
    from backends.coreai.lowering import CoreaiBackend
    from tests.backends.tensor_ops.sessions import of_model

    return of_model(CoreaiBackend().open_model(path), **job)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for index, job in enumerate(json.loads(Path(sys.argv[1]).read_text())):
        np.savez(Path(sys.argv[2]) / f"{index}.npz", **of_file(Path(job.pop("file")), **job))
