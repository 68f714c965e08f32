"""The demo model under the names that the documentation uses, each page in a folder of its own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from llm_export.api import export
from tests.docs.page_runner import ROOT, PageRunner

CHECKPOINT = ROOT / "examples" / "demo"
MODELS = ("qwen3.mote", "model.mote", "my.mote", "float.mote", "smollm2.mote", "out/demo.mote")
HUB_ID, COMMIT = "Qwen/Qwen3-0.6B", "0" * 40
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
TEXT = (ROOT / "tests" / "fixtures" / "heldout_textwrap.txt").read_text()[:2000]
FILES = {
    "messages.json": json.dumps([{"role": "user", "content": "Hello"}]),
    "tools.json": json.dumps([WEATHER]),
    "notes.txt": "The sky is blue because air scatters blue light more than red.",
    "prompt.txt": "Hello",
    "some.txt": TEXT,
    "book.txt": TEXT,
}


@pytest.fixture(scope="session")
def model_file(demo_files) -> Path:
    """The bundled checkpoint, exported as a user exports it."""
    return demo_files.path()


@pytest.fixture(scope="session")
def draft_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("draft") / "small.mote"
    export(f"{CHECKPOINT}-draft", path, check="off")
    return path


@pytest.fixture
def hub(tmp_path, monkeypatch) -> None:
    """A hub's cache that has the bundled checkpoint as Qwen3 0.6B; nothing is asked of the hub itself."""
    from huggingface_hub import constants

    repository = tmp_path / "hub" / f"models--{HUB_ID.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    (repository / "snapshots").mkdir()
    (repository / "snapshots" / COMMIT).symlink_to(CHECKPOINT)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.fixture
def page_runner(tmp_path, model_file, draft_file, hub, monkeypatch) -> Iterator[PageRunner]:
    folder = tmp_path / "page"
    folder.mkdir()
    for name in ("examples", "benchmarks", "scripts", "tests"):
        (folder / name).symlink_to(ROOT / name)
    for name in ("my-checkpoint", "checkpoint"):
        (folder / name).symlink_to(CHECKPOINT)
    (folder / "out").mkdir()
    for name in MODELS:
        os.link(model_file, folder / name)
    os.link(draft_file, folder / "small.mote")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((CHECKPOINT / name).read_bytes())
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, arguments in (("mote", "-m mote.cli "), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {arguments}"$@"\n')
        (programs / name).chmod(0o755)
    monkeypatch.chdir(folder)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    runner = PageRunner(folder, {"PATH": path, "XDG_STATE_HOME": str(tmp_path)})
    yield runner
    runner.close()
    assert list(folder.rglob("*.tmp-*")) == [], "something half-written is left behind"
