"""The demo model, exported without quantization once for all tests of the runner."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "demo"


@pytest.fixture(scope="session")
def demo_path(demo_files) -> Path:
    """examples/demo as a .mote file: MOTE_TEST_DEMO names one that is there already."""
    given = os.environ.get("MOTE_TEST_DEMO")
    return Path(given) if given else demo_files.path(recipe="none")


@pytest.fixture(scope="session")
def runner() -> str:
    """MOTE_TEST_RUNNER, or the one that is installed beside the package or Python."""
    folders = list(importlib.util.find_spec("llm_runner").submodule_search_locations or [])
    candidates = [Path(folder) / "bin" / "mote-runner" for folder in folders] + [
        Path(sys.executable).parent / "mote-runner"
    ]
    found = os.environ.get("MOTE_TEST_RUNNER") or next((str(c) for c in candidates if c.is_file()), None)
    found = found or shutil.which("mote-runner")
    assert found, "mote-runner is not installed"
    return found


@pytest.fixture(scope="session")
def demo(demo_path):
    from llm_runner import Model

    return Model.load(demo_path)


@pytest.fixture(scope="session")
def eager():
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(DEMO, dtype=torch.float32).eval()


@pytest.fixture(scope="session")
def with_metadata(demo_path, tmp_path_factory):
    """with_metadata(field=value, ...) -> the demo model with other fields in its file's metadata."""
    from llm_export.program.writer import write_program
    from llm_runner import Model
    from tests.llm_export.program_reader import read_program

    file = read_program(demo_path)
    folder = tmp_path_factory.mktemp("metadata")

    def make(**fields) -> Model:
        path = folder / f"{len(list(folder.iterdir()))}.mote"
        index = {spec.name: i for i, spec in enumerate(file.weights)}
        metadata = dataclasses.replace(file.metadata, **fields)
        write_program(path, file.planned, metadata, lambda spec: [file.weight_bytes(index[spec.name])])
        return Model.load(path)

    return make


@pytest.fixture(scope="session")
def with_tokenizer(with_metadata):
    """with_tokenizer(json bytes) -> the demo model with another tokenizer in its file."""
    from llm_tokenizer import compile_tokenizer

    return lambda json: with_metadata(tokenizer=compile_tokenizer(json))
