"""`mote advise` of a checkpoint: the beginning of its file is made, without weights, and the runner advises on that."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from llm_runner.errors import ArgumentError
from mote.store.names import is_name, parse_name


def run(words: Sequence[str], index: int, runner: Path) -> int:
    """Returns the runner's exit status. Errors: those of llm_export.api.outline"""
    from mote.extras import check_installed

    check_installed("export", "mote advise of a checkpoint")
    from llm_export.api import default_name, outline

    source = words[index]
    if is_name(source) and not Path(source).is_dir():
        name = parse_name(source)
        if name.tag:
            raise ArgumentError(f"{source}: of a name that is not in the store advice is given without '{name.tag}'")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / default_name(source)
        outline(source, file)
        arguments = [*words[:index], file.name, *words[index + 1 :]]
        return subprocess.run([runner, "advise", *arguments], cwd=folder, check=False).returncode
