"""The likeliest sequences instead of the likeliest next token each time."""

from __future__ import annotations

from typing import NamedTuple

from llm_runner import option_types


class Beam(NamedTuple):
    """A sequence that a beam search found."""

    text: str  # without special tokens
    token_ids: list[int]  # with the end-of-sequence token, if there is one
    score: float  # sum of log-probabilities over length^length_penalty


class BeamSearchOptions(option_types.GenerationOptions, option_types.BeamSearchOptions, total=False):
    """What `Session.beam_search` takes: of a generation max_new_tokens, ignore_eos and what changes logits."""
