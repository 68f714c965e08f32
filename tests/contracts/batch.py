"""Sequences that decode together, beside the same sequences alone."""

from __future__ import annotations

from pathlib import Path

from llm_runner import Batch, Model

CONTEXT, CHUNK, NEW = 32, 4, 6
Steps = dict[int, list[tuple[int, list[tuple[int, float]]]]]  # sequence -> (id, log-probabilities of all ids)


def _options(vocab_size: int) -> dict:
    return {"max_new_tokens": NEW, "do_sample": False, "ignore_eos": True, "top_logprobs": vocab_size}


def _take(batch: Batch, found: Steps) -> None:
    for piece in batch.step():
        if piece.error is not None:
            raise piece.error
        found.setdefault(piece.sequence, []).append((piece.token_id, piece.logprob.top))


def check_batch(path: Path, ids: list[int]) -> None:
    """Fails unless sequences that join and end while others decode give the bits that they give alone.

    Errors: ProgramError for a program whose tokens depend on each other
    """
    prompts = [ids[:9], ids[4:5], ids[2:14], ids[7:10]]
    with Model.load(path) as model:
        options = _options(model.info["vocab_size"])
        found: Steps = {}
        with model.batch(3, context_length=CONTEXT, threads=2, prefill_chunk=CHUNK) as batch:
            for prompt in prompts:  # the last waits until another has ended
                batch.add(prompt, **options)
                _take(batch, found)
                _take(batch, found)
            while len(batch):
                _take(batch, found)
        for number, prompt in enumerate(prompts):
            generation = model.generate(prompt, context_length=CONTEXT, threads=1, prefill_chunk=CHUNK, **options)
            alone = [(piece.token_id, piece.logprob.top) for piece in generation.pieces()]
            assert found[number] == alone, f"sequence {number} differs"
