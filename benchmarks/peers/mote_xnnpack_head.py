"""Mote on XNNPACK with a tied head too, packed for itself: what that costs and gains beside mote_xnnpack."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.peers import mote, mote_xnnpack, worker

PEER = replace(
    mote_xnnpack.PEER,
    name="mote-xnnpack-head",
    module=__name__,
    conversion=f"{mote_xnnpack.PEER.conversion}, the tied head too",
)


def convert(checkpoint: Path, folder: Path) -> None:
    from llm_export import api
    from llm_export.backends.xnnpack.lowering import XnnpackBackend

    backends = [XnnpackBackend(takes_tied=True)]
    api.export(checkpoint, folder / mote.FILE, backends=backends, **mote.OPTIONS)


if __name__ == "__main__":
    worker.main(convert, mote_xnnpack.load)
