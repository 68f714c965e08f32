"""What becomes of a text when the GPU fails, and when it is moved to the CPU and back.

MOTE_TEST_FAULTS=all: every call of a load and a text fails once; a number: so many of each function.
MOTE_TEST_MOVES: how often sessions move at random, of texts of 200 tokens.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

from llm_export import api
from llm_runner import ArgumentError, Model
from tests.backends.parts import ROOT
from tests.contracts.architectures import save_tiny_checkpoint

RUN_FAULTS = ROOT / "build/dev/tests/backends/vulkan/run_faults"
TOKENS = 200


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, vulkan) -> Path:
    """A model of floats, which the GPU and the CPU compute almost alike."""
    folder = tmp_path_factory.mktemp("faults")
    save_tiny_checkpoint("llama", folder / "checkpoint")
    config = folder / "checkpoint/config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"max_position_embeddings": 2 * TOKENS}))
    api.export(folder / "checkpoint", folder / "model.mote", backends="vulkan,cpu", recipe="none", check="off")
    return folder / "model.mote"


def test_whatever_fails_the_text_goes_on(tiny):
    if not RUN_FAULTS.exists():
        pytest.skip(f"{RUN_FAULTS} is not built: build the C++ tests")
    run = [RUN_FAULTS, tiny, os.environ.get("MOTE_TEST_FAULTS", "1")]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    lines = done.stdout.splitlines()
    assert int(lines[-1].split()[0]) > 100
    assert any("hangs -> cpu" in line for line in lines)
    assert any("CreateComputePipelines" in line and "refused ->" in line for line in lines)


@pytest.mark.parametrize("kv_dtype", ["float32", "float16", "int8"])
def test_random_moves_keep_the_text(tiny, kv_dtype):
    """Each logits are near those of the CPU alone, and so are all choices that they do not leave to the last bits."""
    model = Model.load(tiny, backend="vulkan")
    numbers, vocab_size = random.Random(7), model.info["vocab_size"]
    moves = 0
    while moves < int(os.environ.get("MOTE_TEST_MOVES", "40")):
        prompt = [numbers.randrange(3, vocab_size) for _ in range(numbers.randrange(1, 40))]
        options = {"context_length": TOKENS + 64, "threads": 1, "kv_dtype": kv_dtype, "prefill_chunk": 16}
        with model.session(**options) as moving, Model.load(tiny, backend="cpu").session(**options) as resting:
            tokens = list(prompt)
            got, expected = moving.prefill(prompt), resting.prefill(prompt)
            while len(tokens) < TOKENS:
                assert np.abs(got - expected).max() <= (5e-2 if kv_dtype == "int8" else 2e-3), (len(tokens), moves)
                assert moving.tokens == tokens and moving.position == len(tokens)
                tokens.append(int(expected.argmax()))
                if numbers.random() < 0.1:
                    moving.move_to("cpu" if moving.backend == "vulkan" else "vulkan")
                    moves += 1
                    if numbers.random() < 0.5:
                        assert np.array_equal(moving.logits(), got)
                got, expected = moving.decode(tokens[-1]), resting.decode(tokens[-1])
            assert moving.moved_because == ""


def test_a_move_to_nowhere_changes_nothing(tiny):
    with Model.load(tiny, backend="vulkan").session(context_length=32) as session:
        logits = session.prefill([5, 6, 7])
        with pytest.raises(ArgumentError, match="has no target npu: it has vulkan, cpu"):
            session.move_to("npu")
        assert session.backend == "vulkan" and session.tokens == [5, 6, 7]
        assert np.array_equal(session.logits(), logits)


def test_a_moved_session_can_be_watched(tiny):
    """Profiles and values of instructions name the methods of the target that runs."""
    with Model.load(tiny, backend="vulkan").session(context_length=32) as session:
        methods = session._model.describe()["methods"]
        seen: set[str] = set()
        with session.record(lambda method, *_: seen.add(methods[method]["target"])):
            session.prefill([5, 6, 7])
            assert seen == {"vulkan"}
            session.start_profile()
            session.decode(8)
            session.move_to("cpu")
            session.decode(9)
        assert seen == {"vulkan", "cpu"}
        names = [event["name"] for event in session.stop_profile()["traceEvents"]]
        assert "mote.attention" in names and "mote.delegate" not in names
