"""Mote with the whole decoder on a GPU: exported and run by the environment of compare.py."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.peers import mote, worker

BACKEND = "vulkan"
PEER = replace(
    mote.PEER,
    name="mote-vulkan",
    module=__name__,
    backend=BACKEND,
    conversion=f"{mote.PEER.conversion}; Vulkan",
    avx2=None,
)


if __name__ == "__main__":
    worker.main(partial(mote.convert, backend=BACKEND), partial(mote.load, backend=BACKEND))
