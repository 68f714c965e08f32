"""Sequences that decode together are as they are alone."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from llm_runner import ArgumentError, ContextFullError, StateError

PROMPTS = (
    "def add(a, b):\n",
    "import os\n\n\nclass Stack:\n    def __init__(self):\n",
    "x = [",
    "for i in range(10):\n",
    "#",
)
OPTIONS = {"max_new_tokens": 24, "ignore_eos": True}


def alone(model, prompt, session=None, **options):
    generation = (session or model).generate(prompt, **OPTIONS | options)
    text = generation.text()
    return text, generation.token_ids, [entry.top for entry in generation.logprobs]


def together(batch) -> dict[int, tuple[str, list[int], list]]:
    found: dict[int, tuple[str, list[int], list]] = {}
    for piece in batch.run():
        assert piece.error is None
        text, ids, top = found.get(piece.sequence, ("", [], []))
        new = piece.logprob is not None
        found[piece.sequence] = (
            text + piece.text,
            ids + [piece.token_id] * new,
            top + [piece.logprob.top] * new,
        )
    return found


@pytest.mark.parametrize("kv_dtype", ["float32", "float16", "int8", "int4"])
def test_each_sequence_is_as_it_is_alone(demo, kv_dtype):
    settings = [{"seed": i, "temperature": 0.5 + i, "top_logprobs": 5} for i in range(len(PROMPTS))]
    with demo.batch(3, context_length=256, kv_dtype=kv_dtype, threads=2, prefill_chunk=4) as batch:
        for prompt, options in zip(PROMPTS, settings, strict=True):
            batch.add(prompt, **OPTIONS | options)
        found = together(batch)
    for i, (prompt, options) in enumerate(zip(PROMPTS, settings, strict=True)):
        assert found[i] == alone(demo, prompt, kv_dtype=kv_dtype, threads=1, **options)


def test_generate_batch_gives_the_texts_of_generate(demo):
    texts = [""] * len(PROMPTS)
    for index, text in demo.generate_batch(PROMPTS, max_sequences=2, temperature=1.0, seed=7, **OPTIONS):
        assert text
        texts[index] += text
    expected = [alone(demo, prompt, temperature=1.0, seed=7 + i)[0] for i, prompt in enumerate(PROMPTS)]
    assert texts == expected


def test_sessions_go_on_in_a_batch(demo):
    sessions = [demo.session(context_length=128, kv_dtype=kv_dtype) for kv_dtype in ("float32", "int8")]
    others = [demo.session(context_length=128, kv_dtype=kv_dtype) for kv_dtype in ("float32", "int8")]
    for turn in PROMPTS[:2]:
        with demo.batch() as batch:
            for session in sessions:
                batch.add(turn, session=session, do_sample=False, **OPTIONS)
            found = together(batch)
        for i, (session, other) in enumerate(zip(sessions, others, strict=True)):
            assert found[i] == alone(demo, turn, other, do_sample=False)
            assert session.tokens == other.tokens
    for session, other in zip(sessions, others, strict=True):
        np.testing.assert_array_equal(session.decode(5).view(np.uint32), other.decode(5).view(np.uint32))


def test_threads_add_and_cancel_while_one_steps(demo):
    expected = {prompt: alone(demo, prompt, do_sample=False) for prompt in PROMPTS}
    batch = demo.batch(3, context_length=256)
    prompts: dict[int, str] = {}
    cancelled: set[int] = set()
    done = threading.Event()

    def submit(offset: int) -> None:
        for i in range(6):
            prompt = PROMPTS[(i + offset) % len(PROMPTS)]
            number = batch.add(prompt, do_sample=False, top_logprobs=0, **OPTIONS)
            prompts[number] = prompt
            if i % 3 == 2:
                cancelled.add(number)
                batch.cancel(number)

    found: dict[int, list] = {}

    def serve() -> None:
        while batch.wait(timeout=None if not done.is_set() else 0):
            for piece in batch.step():
                found.setdefault(piece.sequence, []).append(piece)

    server = threading.Thread(target=serve)
    server.start()
    clients = [threading.Thread(target=submit, args=(i,)) for i in range(3)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    while len(batch):
        done.wait(0.01)
    done.set()
    batch.close()
    server.join()
    assert sorted(found) == list(range(18))
    for number, pieces in found.items():
        assert pieces[-1].is_last
        assert pieces[-1].statistics["generated_tokens"] == sum(piece.token_id is not None for piece in pieces)
        if number not in cancelled:
            text = "".join(piece.text for piece in pieces)
            assert (text, [piece.token_id for piece in pieces]) == expected[prompts[number]][:2]
        else:
            assert pieces[-1].finish_reason in ("cancelled", "length")


def test_errors_name_what_is_wrong(demo):
    with pytest.raises(ArgumentError, match=r"max_sequences = 0: must be 1\.\.256"):
        demo.batch(0)
    with pytest.raises(ArgumentError, match='kv_dtype = "int5"'):
        demo.batch(kv_dtype="int5")
    with demo.batch(context_length=8) as batch:
        with pytest.raises(ContextFullError):
            batch.add(list(range(9)))
        with pytest.raises(ArgumentError, match="there is no option"):
            batch.add("x", beams=3)
        session = demo.session(context_length=8)
        batch.add("x", session=session)
        for call in (lambda: batch.add("x", session=session), lambda: session.tokens, lambda: session.append("x")):
            with pytest.raises(StateError, match="continues in a batch"):
                call()
        assert len(batch) == 1
    with pytest.raises(ArgumentError, match="the batch is closed"):
        batch.step()
    assert not batch.wait(0)
