"""Continues prompts together where the model can, else one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llm_runner import Model, PrefixCache
from llm_runner.errors import ProgramError

MAX_SEQUENCES = 8  # that decode together
SHARED_BYTES = 256 << 20  # of caches of what prompts have in common, such as the examples of a task

Request = tuple[Sequence[int], dict[str, Any]]  # ids of a prompt, options of its generation


def continue_all(
    model: Model,
    requests: Sequence[Request],
    session_options: dict[str, Any],
    progress: Callable[[int], object] = lambda prompts: None,
) -> list[list[int]]:
    """Returns the ids that follow each prompt. Errors: ArgumentError naming the option; ContextFullError."""
    options = session_options | {"prefix_cache": PrefixCache(SHARED_BYTES)}
    try:
        batch = model.batch(MAX_SEQUENCES, **options)
    except ProgramError:  # sequences of this model are computed alone
        return [_continue_one(model, request, options, progress) for request in requests]
    found: list[list[int]] = [[] for _ in requests]
    with batch:
        index_of = {batch.add(ids, **of_generation): index for index, (ids, of_generation) in enumerate(requests)}
        for piece in batch.run():
            if piece.error is not None:
                raise piece.error
            if piece.token_id is not None:
                found[index_of[piece.sequence]].append(piece.token_id)
            if piece.is_last:
                progress(1)
    return found


def _continue_one(
    model: Model, request: Request, options: dict[str, Any], progress: Callable[[int], object]
) -> list[int]:
    ids, of_generation = request
    with model.session(**options) as session:
        generation = session.generate(ids[session.rewind_to_prefix(ids) :], **of_generation)
        generation.text()
    progress(1)
    return generation.token_ids
