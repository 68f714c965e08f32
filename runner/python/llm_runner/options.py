"""What a caller may ask of a generation, and the same as the C API takes it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

from llm_runner.errors import ArgumentError
from llm_runner.grammar import Grammar

FLOATS = (
    "temperature", "top_p", "min_p", "typical_p", "xtc_probability", "xtc_threshold", "repetition_penalty",
    "frequency_penalty", "presence_penalty", "dry_multiplier", "dry_base", "max_time",
)  # fmt: skip
INTEGERS = (
    "max_new_tokens", "min_new_tokens", "top_k", "repetition_window", "dry_allowed_length", "dry_window",
    "no_repeat_ngram_size", "seed", "top_logprobs", "draft_tokens",
)  # fmt: skip
FLAGS = ("do_sample", "logprobs", "ignore_eos", "skip_special_tokens", "skip_eos")
SPECULATIVE = ("auto", "off", "lookup", "draft")  # in the order of MOTE_SPECULATIVE_*
BIASES = ("sequence_bias", "logit_bias", "bad_words_ids", "suppress_tokens")
# Any of these asks for sampling where do_sample is not given.
IMPLY_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "typical_p", "xtc_probability", "seed")
DRY_SEQUENCE_BREAKERS = ("\n", ":", '"', "*")


class GenerationOptions(TypedDict, total=False):
    """Options of `generate`; docs/sampling.md tells what each does.

    What is absent or None has the value of the file's generation_config, and where that has none transformers' default.
    """

    max_new_tokens: int | None  # 0: until the context is full
    min_new_tokens: int | None  # no end-of-sequence token before so many
    do_sample: bool | None  # a sampling option or a seed implies it
    seed: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    typical_p: float | None
    xtc_probability: float | None
    xtc_threshold: float | None
    repetition_penalty: float | None
    repetition_window: int | None  # tokens that the penalty looks at; 0: all
    frequency_penalty: float | None
    presence_penalty: float | None
    dry_multiplier: float | None
    dry_base: float | None
    dry_allowed_length: int | None
    dry_window: int | None
    dry_sequence_breakers: Sequence[str | int] | None  # texts, of which the last token counts, or token ids
    no_repeat_ngram_size: int | None
    logit_bias: Mapping[int, float] | None  # token id -> what is added to its logit
    sequence_bias: Mapping[tuple[int, ...], float] | Sequence[tuple[Sequence[int], float]] | None
    bad_words_ids: Sequence[Sequence[int]] | None
    suppress_tokens: Sequence[int] | None
    stop_token_ids: Sequence[int] | None  # end it beside the model's end-of-sequence tokens, and are no text
    max_time: float | None  # seconds; 0: no limit
    json_schema: Mapping[str, Any] | str | bool | type | None  # the text is JSON that it accepts; also a pydantic model
    regex: str | None  # the whole text matches it
    grammar: str | Grammar | None  # GBNF or Lark, or any `Grammar`; what was compiled once is quicker
    grammar_syntax: str | None  # "gbnf" or "lark"; None: GBNF if there is a ::= in it
    logprobs: bool  # `Generation.logprobs` tells how likely each token was
    top_logprobs: int | None  # and which so many were the likeliest, 0..1000
    ignore_eos: bool  # goes on after the end-of-sequence token
    skip_special_tokens: bool  # in the text; True unless given
    skip_eos: bool  # without the end-of-sequence token even if special tokens are in the text
    speculative: str | None  # "auto" unless given, "off", "lookup" or "draft": docs/speculative-decoding.md
    draft_tokens: int | None  # proposed at a time; 0: as many as pay


def native_options(
    options: Mapping[str, Any], tokenize: Callable[[str], list[int]], eos: Sequence[int]
) -> dict[str, Any]:
    """Returns the options that were given, as the C API takes them.

    tokenize: text -> ids, for dry_sequence_breakers   eos: which bad_words_ids may not hold back
    Errors: ArgumentError naming the option
    """
    unknown = set(options) - set(GenerationOptions.__annotations__)
    if unknown:
        names = ", ".join(GenerationOptions.__annotations__)
        raise ArgumentError(f"unknown option {sorted(unknown)[0]}: must be one of {names}")
    given = {name: value for name, value in options.items() if value is not None}
    if "do_sample" not in given and any(name in given for name in IMPLY_SAMPLING):
        given["do_sample"] = True
    given.setdefault("seed", secrets.randbits(63))
    native: dict[str, Any] = {name: checked_float(name, given[name]) for name in FLOATS if name in given}
    native |= {name: int(bool(given[name])) for name in FLAGS if name in given}
    for name in INTEGERS:
        if name in given:
            native[name] = checked_int(name, given[name], 0, 2**64 - 1 if name == "seed" else 2**31 - 1)
    if "speculative" in given:
        native["speculative"] = checked_choice("speculative", given["speculative"], SPECULATIVE)
    native["sequence_bias"] = _biases(given, eos)
    native["stop_token_ids"] = checked_ids(given.get("stop_token_ids", ()))
    if given.get("dry_multiplier"):
        breakers = given.get("dry_sequence_breakers", DRY_SEQUENCE_BREAKERS)
        ids = [tokenize(item)[-1:] if isinstance(item, str) else [item] for item in breakers]
        native["dry_sequence_breakers"] = checked_ids([id for found in ids for id in found])
    return native


def _biases(given: Mapping[str, Any], eos: Sequence[int]) -> list[tuple[list[int], float]]:
    sequences = given.get("sequence_bias", ())
    pairs = [(ids, bias) for ids, bias in (sequences.items() if isinstance(sequences, Mapping) else sequences)]
    pairs += [([id], bias) for id, bias in given.get("logit_bias", {}).items()]
    words = [checked_ids(word) for word in given.get("bad_words_ids", ())]
    pairs += [(word, -np.inf) for word in words if word not in [[id] for id in eos]]
    pairs += [([id], -np.inf) for id in given.get("suppress_tokens", ())]
    return [(checked_ids(ids), checked_float("a bias", bias)) for ids, bias in pairs]


def checked_int(name: str, value: Any, low: int, high: int) -> int:
    """Returns `value` as int. Errors: ArgumentError unless it is one between low and high."""
    try:
        number = value.__index__()
    except AttributeError:
        raise ArgumentError(f"{name} = {value!r}: must be an integer") from None
    if not low <= number <= high:
        raise ArgumentError(f"{name} = {number}: must be {low}..{high}")
    return number


def checked_choice(name: str, value: Any, choices: Sequence[str]) -> int:
    """Returns the place of `value` among the choices. Errors: ArgumentError if it is none of them."""
    if value not in choices:
        raise ArgumentError(f"{name} = {value!r}: must be one of {', '.join(choices)}")
    return list(choices).index(value)


def checked_float(name: str, value: Any) -> float:
    """Returns `value` as float. Errors: ArgumentError unless it is a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} = {value!r}: must be a number") from None


def checked_ids(ids: Sequence[int]) -> list[int]:
    """Returns token ids as a list of int32. Errors: ArgumentError for anything else."""
    if isinstance(ids, (str, bytes)):
        raise ArgumentError("token ids must be integers, not text")
    array = np.asarray(ids)
    if array.size == 0:
        return []
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ArgumentError(f"token ids must be a list of integers, not {array.dtype} {list(array.shape)}")
    if int(array.max()) > 2**31 - 1 or int(array.min()) < -(2**31):
        raise ArgumentError(f"token id {int(array[np.abs(array.astype(object)).argmax()])}: must lie in the vocabulary")
    return array.astype(np.int32).tolist()
