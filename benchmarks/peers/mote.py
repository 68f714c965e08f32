"""Mote itself: exported and run by the environment of compare.py."""

from __future__ import annotations

import os
import time
from pathlib import Path

from benchmarks.peers import Peer, worker

PEER = Peer(
    name="mote",
    module=__name__,
    requirements=(),
    distribution="mote",
    conversion="8da4w, groups of 32, embedding and head 4 bits",
    head="4 bits, groups of 32",
    cache="float16",
    # The second where memory is read fastest in one stream, which is said of no other CPU.
    avx2={"MOTE_CPU_FEATURES": "avx2+onestream"},
)
FILE = "model.mote"
OPTIONS = {"recipe": "8da4w", "group_size": 32, "embedding_bits": 4, "tokenizer": False, "check": "off"}
KV_DTYPE = "MOTE_COMPARE_KV_DTYPE"


def convert(checkpoint: Path, folder: Path, backend: str = "cpu") -> None:
    from llm_export import api

    api.export(checkpoint, folder / FILE, backends=backend, **OPTIONS)


class Mote:
    def __init__(self, path: Path, threads: int, context_length: int, backend: str):
        from llm_runner import Model

        self._model = Model.load(path, backend=backend)
        self._session = self._model.session(
            context_length=context_length, kv_dtype=os.environ.get(KV_DTYPE, PEER.cache), threads=threads
        )

    def generate(self, prompt: list[int], count: int) -> tuple[list[int], list[float]]:
        self._session.reset()
        first = self._continue(prompt, 1)
        times = [time.perf_counter()]
        # The session keeps all but the last token, so the rest goes on from that one.
        rest = self._continue(first, count - 1) if count > 1 else []
        times += [time.perf_counter()] * len(rest)
        return first + rest, times

    def _continue(self, ids: list[int], count: int) -> list[int]:
        # Random weights repeat themselves, so guesses would be right, and none of the peers guesses.
        options = {"do_sample": False, "ignore_eos": True, "speculative": "off"}
        generation = self._session.generate(ids, max_new_tokens=count, **options)
        generation.text()
        return generation.token_ids


def load(folder: Path, threads: int, context_length: int, backend: str = "cpu") -> Mote:
    return Mote(folder / FILE, threads, context_length, backend)


if __name__ == "__main__":
    worker.main(convert, load)
