"""The likeliest sequences instead of the likeliest next token each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from llm_runner import _core
from llm_runner.errors import ArgumentError
from llm_runner.options import checked_float, checked_ids, checked_int

if TYPE_CHECKING:
    from llm_runner.session import Session

EARLY_STOPPING = {False: 0, True: 1, "never": 2}  # MOTE_EARLY_STOPPING_*


class Beam(NamedTuple):
    """A sequence that a beam search found."""

    text: str  # without special tokens
    token_ids: list[int]  # with the end-of-sequence token, if there is one
    score: float  # sum of log-probabilities over length^length_penalty


def beam_search(
    session: Session,
    ids: Sequence[int],
    native: dict[str, Any],
    num_beams: int,
    num_return_sequences: int,
    length_penalty: float,
    early_stopping: bool | str,
) -> list[Beam]:
    """See `Session.beam_search`; native: options of a generation as the C API takes them."""
    if early_stopping not in EARLY_STOPPING:
        raise ArgumentError(f"early_stopping = {early_stopping!r}: must be False, True or 'never'")
    found = _core.beam_search(
        session._model._core,
        session._core,
        checked_ids(ids),
        native,
        checked_int("num_beams", num_beams, -(2**31), 2**31 - 1),
        checked_int("num_return_sequences", num_return_sequences, -(2**31), 2**31 - 1),
        checked_float("length_penalty", length_penalty),
        EARLY_STOPPING[early_stopping],
    )
    return [Beam(session._model.detokenize(ids, True), ids, score) for ids, score in found]
