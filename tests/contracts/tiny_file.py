"""A tiny model of a type as a file, for programs that damage files: `python -m tests.contracts.tiny_file TYPE PATH`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from llm_export import api
from tests.contracts.architectures import save_tiny_checkpoint

if __name__ == "__main__":
    name, path = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        save_tiny_checkpoint(name, folder)
        api.export(Path(folder), Path(path), check="off")
