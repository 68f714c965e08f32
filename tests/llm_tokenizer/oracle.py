"""Comparison of a tokenizer of ours with the one that it must equal."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import tokenizers

from llm_tokenizer import Tokenizer
from tests.llm_tokenizer import texts

ROOT = Path(__file__).resolve().parents[2]
# MOTE_TEST_MEGABYTES: how much random text each tokenizer reads; the long run has 100.
MEGABYTES = float(os.environ.get("MOTE_TEST_MEGABYTES", "0.05"))


def assert_same(ours: Tokenizer, theirs: tokenizers.Tokenizer, text: str) -> None:
    for add_special in (True, False):
        try:
            expected = theirs.encode(text, add_special_tokens=add_special)
        except BaseException as error:  # tokenizers raises bare Exception, or panics
            expected = error
        if isinstance(expected, BaseException):
            continue
        found = ours.encode(text, add_special)
        assert found.ids == expected.ids, difference(text, found.ids, expected.ids)
        assert found.offsets == expected.offsets, difference(text, found.offsets, expected.offsets)
        assert ours.encode_ids(text, add_special) == expected.ids
        for skip in (True, False):
            assert ours.decode(expected.ids, skip) == theirs.decode(expected.ids, skip_special_tokens=skip), repr(
                text[:200]
            )


def difference(text: str, found: list, expected: list) -> str:
    pairs = zip(found, expected, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(found), len(expected)))
    around = slice(max(0, at - 2), at + 4)
    return f"{text[:300]!r}: item {at}: {found[around]} instead of {expected[around]}"


def assert_same_on_all_texts(ours: Tokenizer, theirs: tokenizers.Tokenizer, seed: int = 0, step: int = 7) -> None:
    for text in texts.FIXED:
        assert_same(ours, theirs, text)
    rng = random.Random(seed)
    size = 0
    while size < MEGABYTES * 1e6:
        text = texts.random_text(rng)
        size += len(text.encode())
        assert_same(ours, theirs, text)
    for text in texts.every_code_point(step):
        assert_same(ours, theirs, text)


def both(description: dict | str) -> tuple[Tokenizer, tokenizers.Tokenizer]:
    """Returns our tokenizer and Hugging Face's for a tokenizer.json."""
    text = description if isinstance(description, str) else json.dumps(description)
    return Tokenizer.from_str(text), tokenizers.Tokenizer.from_str(text)
