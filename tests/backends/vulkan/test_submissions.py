"""How calls are cut into submissions, and that their bits do not depend on it."""

from __future__ import annotations

import os
import subprocess

import pytest

from llm_runner import Model
from tests.backends.parts import ROOT

RUN_SUBMISSIONS = ROOT / "build/dev/tests/backends/vulkan/run_submissions"


def submitted(path, microseconds: int) -> list[tuple[int, int, str]]:
    """Of the two calls of run_submissions: submissions, waits and a checksum of the logits."""
    if not RUN_SUBMISSIONS.exists():
        pytest.skip(f"{RUN_SUBMISSIONS} is not built: build the C++ tests")
    environment = os.environ | {"MOTE_GPU_LIMITS": f"submission_us={microseconds}"}
    done = subprocess.run([RUN_SUBMISSIONS, path], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    return [(int(submissions), int(waits), checksum) for submissions, waits, checksum in lines]


@pytest.fixture(scope="module")
def both(demo_files, vulkan):
    return demo_files.path(backends="vulkan,cpu")


def test_calls_are_cut_and_keep_their_bits(both):
    """The least limit makes every dispatch a submission, and several of those that can be divided."""
    cut, usual = submitted(both, 1), submitted(both, 50_000)
    with Model.load(both, backend="vulkan").session(context_length=64, prefill_chunk=64) as session:
        session.start_profile()
        session.prefill(list(range(3, 43)))
        session.decode(7)
        events = session.stop_profile()["traceEvents"]
    calls = [event["ts"] for event in events if event.get("cat") == "call"]
    steps = [event for event in events if event.get("cat") == "op" and "submission" in event["args"]]
    dispatches = sum(event["ts"] < calls[1] for event in steps), sum(event["ts"] >= calls[1] for event in steps)
    for (submissions, waits, checksum), (_, usual_waits, expected), count in zip(cut, usual, dispatches, strict=True):
        assert waits == usual_waits == 1  # at the end
        assert submissions > count
        assert checksum == expected


def test_profiles_tell_of_submissions(both):
    with Model.load(both, backend="vulkan").session(context_length=64) as session:
        session.start_profile()
        session.decode(7)
        steps = [event["args"] for event in session.stop_profile()["traceEvents"] if event.get("cat") == "op"]
    numbers = [step["submission"] for step in steps if "submission" in step]
    assert numbers[0] == 1 and numbers == sorted(numbers) and set(numbers) == set(range(1, numbers[-1] + 1))
