"""Mote on XNNPACK but for attention, embedding and head: exported and run by the environment of compare.py."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.peers import mote, worker

BACKEND = "xnnpack"
PEER = replace(mote.PEER, name="mote-xnnpack", module=__name__, conversion=f"{mote.PEER.conversion}; XNNPACK")


def load(*arguments) -> mote.Mote:
    from llm_export.backends.xnnpack.library import name_library

    name_library()
    return mote.load(*arguments, backend=BACKEND)


if __name__ == "__main__":
    worker.main(partial(mote.convert, backend=BACKEND), load)
