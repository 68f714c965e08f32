"""Sessions that go back, branch, are saved and draft, beside one that computes its text once."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from llm_runner import Model

CONTEXT, CHUNK, NEW = 48, 4, 12


def _check_saved(model: Model, session, ids: list[int], rows: np.ndarray, path: Path) -> None:
    at = session.position
    session.save(path)
    with model.session(context_length=CONTEXT, threads=1, prefill_chunk=CHUNK) as restored:
        restored.restore(path)
        np.testing.assert_array_equal(restored.decode(ids[at]), rows[at], "restored")
        restored.rewind(at - 4)
        np.testing.assert_array_equal(restored.prefill(ids[at - 4 :]), rows[-1], "restored, then taken back")


def _check_drafts(model: Model, ids: list[int]) -> None:
    options = {"context_length": CONTEXT, "threads": 1, "do_sample": False, "ignore_eos": True, "max_new_tokens": NEW}
    found = []
    for mode in ("off", "lookup"):
        generation = model.generate(ids[:5] * 3, speculative=mode, **options)
        generation.text()
        found.append(generation.token_ids)
    assert found[0] == found[1] and len(found[0]) == NEW, "drafts change tokens"


def check_session(path: Path, ids: list[int], folder: Path) -> None:
    """Fails unless a session gives the bits of a text computed once, whatever it did before."""
    with Model.load(path) as model:
        with model.session(context_length=CONTEXT, threads=1, prefill_chunk=CHUNK) as session:
            rows = np.stack(list(session.verify(ids)))
            for to in (len(ids) - 1, len(ids) - 6, 3):
                session.rewind(to)
                np.testing.assert_array_equal(session.prefill(ids[to:]), rows[-1], f"taken back to {to}")
            session.rewind(8)
            session.prefill(ids[::-1][:6])  # another text
            session.rewind(8)
            with session.fork() as fork:
                np.testing.assert_array_equal(fork.prefill(ids[8:]), rows[-1], "a fork")
            np.testing.assert_array_equal(session.decode(ids[8]), rows[8], "beside a fork")
            _check_saved(model, session, ids, rows, folder / "a.session")
        _check_drafts(model, ids)
