"""Logits are equal to the bit however the work is split: over threads, chunks of the prompt, and calls."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from llm_runner import Model, PrefixCache

PROMPT = "def add(a, b):\n    return a + b\n\n\nclass Stack:\n    def __init__(self):\n        self.items = []\n" * 4
KV_DTYPES = ("float32", "float16", "int8", "int4")


@pytest.fixture(scope="module", params=["none", "8da4w"])
def model(request, demo, demo_files):
    """The demo model: dense as the other tests have it, or quantised as users have it."""
    return demo if request.param == "none" else Model.load(demo_files.path(request.param))


def hash_of(logits: list[np.ndarray]) -> str:
    return hashlib.sha256(np.stack(logits).tobytes()).hexdigest()


def logits_of(session, ids: list[int]) -> list[np.ndarray]:
    """The last of the prompt, then two decoded tokens."""
    return [session.prefill(ids[:-2]), session.decode(ids[-2]), session.decode(ids[-1])]


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
def test_threads_and_chunks_do_not_change_a_bit(model, kv_dtype):
    ids = model.tokenize(PROMPT)
    assert len(ids) > 64
    hashes = {}
    for threads in (1, 2, 3, 4):
        for chunk in (1, 2, 7, 64, len(ids)):
            session = model.session(context_length=256, threads=threads, prefill_chunk=chunk, kv_dtype=kv_dtype)
            hashes[threads, chunk] = hash_of(logits_of(session, ids))
    assert len(set(hashes.values())) == 1, hashes


def test_one_token_at_a_time_equals_many_at_once(model):
    ids = model.tokenize(PROMPT)[:40]
    session = model.session(context_length=64)
    session.prefill(ids[:1])
    one_by_one = np.stack([session.decode(token) for token in ids[1:]])
    session = model.session(context_length=64)
    session.prefill(ids[:1])
    np.testing.assert_array_equal(session.verify(ids[1:]).view(np.uint32), one_by_one.view(np.uint32))


def test_the_way_to_a_position_does_not_change_a_bit(model, tmp_path):
    ids = model.tokenize(PROMPT)
    first, other = ids[:60], ids[60:90]
    options = {"context_length": 256, "threads": 2, "prefill_chunk": 16}

    def fresh():
        return model.session(**options)

    def behind_others():
        companion = fresh()
        companion.prefill(other)
        session = fresh()
        session.prefill(first[:20])
        companion.prefill(other[:7])
        return session

    def forked():
        session = fresh()
        session.prefill(first[:31])
        return session.fork()

    def rewound():
        session = fresh()
        session.prefill(first[:25] + other)
        session.rewind(25)
        return session

    def restored():
        session = fresh()
        session.prefill(first[:43])
        session.save(tmp_path / "saved")
        session = fresh()
        session.restore(tmp_path / "saved")
        return session

    def of_the_prefix_cache():
        cache = PrefixCache(1 << 30)
        model.session(**options, prefix_cache=cache).prefill(first[:50])
        return model.session(**options, prefix_cache=cache)

    hashes = {}
    for way in (fresh, behind_others, forked, rewound, restored, of_the_prefix_cache):
        session = way()
        session.set_tokens(first)
        hashes[way.__name__] = hash_of([session.logits(), *(session.decode(id) for id in other[:4])])
    assert len(set(hashes.values())) == 1, hashes


def test_companions_in_a_batch_do_not_change_a_bit(model):
    ids = model.tokenize(PROMPT)
    prompts = [ids[:40], ids[20:55], ids[5:9]]
    options = {"max_new_tokens": 12, "do_sample": False, "ignore_eos": True, "top_logprobs": 50}

    def hash_of_steps(wanted: int, together: list[list[int]]) -> str:
        steps = []
        with model.batch(len(together), context_length=128) as batch:
            for prompt in together:
                batch.add(prompt, **options)
            while len(batch):
                steps += [
                    str((piece.token_id, piece.logprob.top)) for piece in batch.step() if piece.sequence == wanted
                ]
        return hashlib.sha256("".join(steps).encode()).hexdigest()

    assert hash_of_steps(0, prompts[:1]) == hash_of_steps(0, prompts) == hash_of_steps(2, prompts[::-1])


def test_reading_the_file_instead_of_mapping_it_does_not_change_a_bit(demo_path):
    hashes = set()
    for mmap in (True, False):
        with Model.load(demo_path, mmap=mmap) as loaded, loaded.session(context_length=256) as session:
            hashes.add(hash_of(logits_of(session, loaded.tokenize(PROMPT))))
    assert len(hashes) == 1


READ_HASH = """
import hashlib, sys
from llm_runner import Model, PrefixCache
model = Model.load(sys.argv[1])
session = model.session(context_length=256, prefill_chunk=32)
print(hashlib.sha256(session.prefill(model.tokenize(sys.argv[2])).tobytes()).hexdigest())
"""


def test_instruction_sets_do_not_change_a_bit(demo_path):
    def run(features: str | None) -> str:
        environment = {key: value for key, value in os.environ.items() if key != "MOTE_CPU_FEATURES"}
        if features is not None:
            environment["MOTE_CPU_FEATURES"] = features
        command = [sys.executable, "-c", READ_HASH, str(Path(demo_path)), PROMPT]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()

    hashes = {features: run(features) for features in (None, "none", "avx2", "avx2,avxvnni", "avx2,avx512", "dotprod")}
    assert len(set(hashes.values())) == 1, hashes
