"""Tokens chosen from the largest logits alone, which the GPU finds: the same texts, and few bytes read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from backends.vulkan.lowering import VulkanBackend
from llm_runner import Model
from tests.backends.parts import Part, T, random, run_blob

TOKENS = 24
PAIR = 8  # bytes of a logit and its id


@pytest.fixture(scope="module")
def model(demo_files, vulkan) -> Model:
    return Model.load(demo_files.path(backends="vulkan,cpu"), backend="vulkan")


@pytest.fixture(scope="module")
def all_bytes(model) -> int:
    with model.session(context_length=16) as session:
        return session.prefill([5]).nbytes


def written(model: Model, prompt: str = "def read_lines(path):\n", **options) -> tuple[str, list[float]]:
    """A text, and the bytes that each call read of what it computed."""
    with model.session(context_length=256, prefill_chunk=64) as session:
        session.start_profile()
        text = session.generate(prompt, max_new_tokens=TOKENS, ignore_eos=True, **options).text()
        events = session.stop_profile()["traceEvents"]
    return text, [event["args"]["bytes"] for event in events if event["name"] == "vulkan.read"]


@pytest.mark.parametrize(
    "options",
    [
        {"do_sample": False},
        {"do_sample": False, "speculative": "off"},
        {"top_k": 1, "seed": 3},
        {"top_k": 8, "seed": 3},
        {"top_k": 64, "seed": 4, "temperature": 2.0},
        {"top_k": 40, "seed": 5, "top_p": 0.8, "min_p": 0.02, "typical_p": 0.9},
        {"top_k": 40, "seed": 6, "xtc_probability": 0.5, "temperature": 1.5},
    ],
    ids=str,
)
def test_texts_are_those_of_all_logits(model, all_bytes, options):
    count = 1 if options.get("do_sample") is False else options["top_k"] + 1
    text, few = written(model, **options)
    expected, all_of_them = written(model, logprobs=True, **options)
    assert text == expected and len(text) > 10
    assert min(all_of_them) == all_bytes
    rows = [size / PAIR / count for size in few]
    assert all(row == int(row) and 1 <= row <= 64 for row in rows)
    assert rows.count(1) >= 1


@pytest.mark.parametrize(
    "options",
    [{"repetition_penalty": 1.2}, {"top_k": 65, "seed": 1}, {"top_k": 0, "top_p": 0.9, "seed": 1}, {"logprobs": True}],
    ids=str,
)
def test_options_that_look_at_all_logits_read_them(model, all_bytes, options):
    _, read = written(model, **({"do_sample": False} | options if "seed" not in options else options))
    assert min(read) == all_bytes


def test_logits_are_there_afterwards(model):
    """A session that has found the largest still gives all, keeps them in copies, and goes on with them on the CPU."""
    with model.session(context_length=128) as session, model.session(context_length=128) as other:
        text = session.generate("import os\n", max_new_tokens=5, do_sample=False, ignore_eos=True).text()
        other.append(session.tokens[:-1])
        expected = other.decode(session.tokens[-1])
        assert text
        copy = session.fork()
        assert np.array_equal(session.logits(), expected)
        assert np.array_equal(copy.logits(), expected)
        session.append([5])
        session.generate(max_new_tokens=1, do_sample=False, ignore_eos=True).text()
        last = session.logits()
        session.move_to("cpu")
        assert np.array_equal(session.logits(), last)


def test_files_keep_the_logits_of_what_was_found(model, tmp_path: Path):
    with model.session(context_length=128) as session:
        session.generate("import os\n", max_new_tokens=5, do_sample=False, ignore_eos=True).text()
        session.save(tmp_path / "saved")
        with model.session(context_length=128) as restored:
            restored.restore(tmp_path / "saved")
            assert np.array_equal(restored.logits(), session.logits())


@pytest.mark.parametrize("width", [3, 64, 65, 4096, 4097, 20_000])
@pytest.mark.parametrize("count", [1, 2, 65])
def test_largest_of_rows(width, count, vulkan):
    """As PyTorch sorts: of equal ones the first, and what is not a number counts as the least."""
    if count > width:
        pytest.skip("more than a row has")
    tokens = 3
    x = random(1, tokens, width)
    x[0, 1] = (x[0, 1] * 2).round()  # many are equal
    x[0, 2, : width // 2] = float("nan")
    x[0, 2, width // 2 :: 3] = float("inf")
    x[0, 2, width // 2 + 1 :: 3] = float("-inf")
    part = Part("aten.neg", [(1, T, width)], (1, T, width), {})
    lowered = VulkanBackend().lower(part.subgraph)
    y, found = run_blob("vulkan", lowered, [], tokens, [-x], [(1, tokens, width)], largest=count)
    assert torch.equal(y.nan_to_num(nan=7.0), x.nan_to_num(nan=7.0))
    ranked = x[0].nan_to_num(nan=float("-inf"), posinf=float("inf"), neginf=float("-inf"))
    values, places = ranked.sort(dim=-1, descending=True, stable=True)
    assert torch.equal(found[..., 1].long(), places[:, :count])
    assert torch.equal(found[..., 0].contiguous().view(torch.float32), values[:, :count] + 0.0)
