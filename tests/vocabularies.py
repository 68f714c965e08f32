"""Tokenizers of real models, where the machine has them: NAME.json.gz in the folder that MOTE_TEST_TOKENIZERS names."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("MOTE_TEST_TOKENIZERS", ROOT.parent / "shared" / "data" / "tokenizers"))
SUFFIX = ".json.gz"


def names() -> list[str]:
    """Those that are here."""
    return sorted(path.name.removesuffix(SUFFIX) for path in FOLDER.glob(f"*{SUFFIX}"))


def tokenizer_json(name: str) -> bytes:
    """Returns the file's content; a test is skipped without it."""
    path = FOLDER / f"{name}{SUFFIX}"
    if not path.is_file():
        pytest.skip(f"{path} is not here; MOTE_TEST_TOKENIZERS names the folder")
    return gzip.decompress(path.read_bytes())
