"""Type information: what the stub says of the C++ module, and what a user's checker says of a program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import llm_runner

PROGRAM = """
import asyncio
from collections.abc import Iterator
import numpy as np
from llm_runner import Generation, Model, PrefixCache, ReplyEvent, Session, describe_options

def main() -> None:
    model: Model = Model.load("x.mote", backend="cpu", mmap=False)
    generation: Generation = model.generate("x", max_new_tokens=3, stop_token_ids=[1], max_time=2.5, kv_dtype="int8")
    for piece in generation:
        print(piece.upper())
    with model.session(threads=1, cpus=[0], prefix_cache=PrefixCache(1)) as session:
        logits: np.ndarray = session.prefill([1])
        print(logits.shape, session.tokens[0] + 1)
        for event in session.chat([{"role": "user", "content": "x"}], temperature=0.5, tools=[], stop_strings="x"):
            print(event.kind, event.text)
        print(session.beam_search("x", num_beams=2, early_stopping="never", logit_bias={1: 2.0})[0].score)
    for option in describe_options():
        print(option["name"])

async def later(model: Model) -> str:
    async for piece in model.agenerate("x"):
        return piece
    async with model.achat([]) as stream:
        async for event in stream:
            print(event.kind)
        return str(stream.generation.message["content"])
    return ""
"""
WRONG = {
    'model.generate("x", max_new_tokens="3")': "arg-type",
    'model.generate("x", max_tokens=3)': "call-arg",
    "model.generate(1.5)": "arg-type",
    "model.chat([], tool=[])": "call-arg",
    "model.chat([], context_length='4')": "arg-type",
    "model.generate('x', kv_dtype='float8')": "arg-type",
    "model.generate('x', mirostat=1)": "arg-type",
    "model.session(temperature=1.0)": "call-arg",
    "model.session().beam_search('x', early_stopping='soon')": "arg-type",
    "Model.load('x', backend=1)": "arg-type",
    "model.session().chat([], context_length=4)": "call-arg",
    "for piece in model.generate('x'): piece + 1": "operator",
}


# pybind11's classes have a metaclass of their own, which a stub need not name.
ALLOWED = r"llm_runner\._core\.[A-Za-z]+"


def run(folder, *arguments):
    # numpy's types take half a minute to read, once.
    environment = os.environ | {"MYPY_CACHE_DIR": str(Path(__file__).parents[2] / "build" / "mypy_cache")}
    command = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, cwd=folder, env=environment
    )


def test_the_stub_is_that_of_the_module(tmp_path):
    (tmp_path / "allowed").write_text(ALLOWED)
    done = run(tmp_path, "mypy.stubtest", "--allowlist", "allowed", "llm_runner._core")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_and_programs_that_use_it_are_checked(tmp_path):
    assert (Path(llm_runner.__file__).parent / "py.typed").exists()
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__init__.py").touch()
    (tmp_path / "program" / "right.py").write_text(PROGRAM)
    lines = "".join(f"    {line}\n" for line in WRONG)
    (tmp_path / "program" / "wrong.py").write_text(
        "from llm_runner import Model\ndef f(model: Model) -> None:\n" + lines
    )
    done = run(tmp_path, "mypy", "--check-untyped-defs", "-p", "llm_runner", "-p", "program")
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    places = [line.partition(": error:")[0] for line in errors]
    assert places == [f"program/wrong.py:{number}" for number in range(3, 3 + len(WRONG))], done.stdout + done.stderr
    for line, code in zip(errors, WRONG.values(), strict=True):
        assert line.endswith(f"[{code}]"), line
