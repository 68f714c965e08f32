"""Comparison of a tokenizer of ours with the one that it must equal."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import tokenizers

from llm_tokenizer import Encoding, Tokenizer, TokenizerError
from tests.llm_tokenizer import corpus, texts

ROOT = Path(__file__).resolve().parents[2]
# MOTE_TEST_MEGABYTES: how much text each tokenizer reads; the long run has 100. MOTE_TEST_SEED: another text.
# Tokenizers that differ in one normalizer, pre-tokenizer, processor or decoder read a sixteenth: the oracle takes a second a megabyte.
MEGABYTES = float(os.environ.get("MOTE_TEST_MEGABYTES", "3"))
COMPONENT_SHARE = 1 / 16
SEED = int(os.environ.get("MOTE_TEST_SEED", "0"))


def assert_same(ours: Tokenizer, theirs: tokenizers.Tokenizer, text: str) -> None:
    """Compares everything about one text: ids and places, with and without special tokens, and text both ways."""
    for add_special in (True, False):
        try:
            expected = theirs.encode(text, add_special_tokens=add_special)
        except Exception:
            assert_refused(ours, text)
            continue
        except BaseException:  # a panic of tokenizers, of which we make something of our own
            continue
        found = ours.encode(text, add_special_tokens=add_special)
        assert found.ids == expected.ids, difference(text, found.ids, expected.ids)
        assert found.offsets == expected.offsets, difference(text, found.offsets, expected.offsets)
        assert found.type_ids == expected.type_ids, difference(text, found.type_ids, expected.type_ids)
        assert ours.encode_ids(text, add_special) == expected.ids
        for skip in (True, False):
            decoded = theirs.decode(expected.ids, skip_special_tokens=skip)
            assert ours.decode(expected.ids, skip) == decoded, repr(text[:200])


def assert_refused(ours: Tokenizer, text: str) -> None:
    """Where `tokenizers` raises, so do we."""
    try:
        found = ours.encode(text)
    except TokenizerError:
        return
    raise AssertionError(f"{text[:300]!r}: {found.ids[:8]} instead of an error")


def difference(text: str, found: list, expected: list) -> str:
    pairs = zip(found, expected, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(found), len(expected)))
    around = slice(max(0, at - 2), at + 4)
    return f"{text[:300]!r}: item {at}: {found[around]} instead of {expected[around]}"


def assert_same_on_all_texts(ours: Tokenizer, theirs: tokenizers.Tokenizer, share: float = 1) -> None:
    """Compares on fixed texts and on MEGABYTES of others, or on a share of these."""
    for text in texts.FIXED:
        assert_same(ours, theirs, text)
    for_code_points = MEGABYTES if MEGABYTES >= 50 else share * MEGABYTES
    for number, batch in enumerate(corpus.documents(share * MEGABYTES, SEED, for_code_points)):
        assert_same_batch(ours, theirs, batch, add_special=number % 2 == 0, skip_special=number % 4 < 2)


def assert_same_batch(
    ours: Tokenizer, theirs: tokenizers.Tokenizer, batch: list[str], add_special: bool = True, skip_special: bool = True
) -> None:
    try:
        expected = theirs.encode_batch(batch, add_special_tokens=add_special)
    except BaseException:  # an error or a panic about one of them
        for text in batch:
            assert_same(ours, theirs, text)
        return
    encoded = [Encoding(encoding.ids, encoding.offsets, encoding.type_ids) for encoding in expected]
    ids = [encoding.ids for encoding in encoded]
    decoded = theirs.decode_batch(ids, skip_special_tokens=skip_special)
    same = ours.encode_batch(batch, add_special) == encoded
    same = same and [ours.encode_ids(text, add_special) for text in batch] == ids
    if not same or ours.decode_batch(ids, skip_special) != decoded:
        fail_on_shortest(batch, lambda text: assert_same(ours, theirs, text))


def fail_on_shortest(batch: list[str], check: Callable[[str], None]) -> None:
    """Fails as `check` does on the shortest text to be found."""

    def differs(text: str) -> bool:
        try:
            check(text)
        except AssertionError:
            return True
        return False

    text = next((text for text in batch if differs(text)), None)
    assert text is not None, "texts differ together but not alone"
    size = len(text)
    while size > 0:
        begin = 0
        while begin < len(text):
            shorter = text[:begin] + text[begin + size :]
            if differs(shorter):
                text = shorter
            else:
                begin += size
        size //= 2
    check(text)


def both(description: dict | str) -> tuple[Tokenizer, tokenizers.Tokenizer]:
    """Returns our tokenizer and Hugging Face's for a tokenizer.json."""
    text = description if isinstance(description, str) else json.dumps(description)
    return Tokenizer.from_str(text), tokenizers.Tokenizer.from_str(text)
