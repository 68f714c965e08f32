"""Byte pair encodings with merges at random, also of parts of characters with their neighbours, beside `tokenizers`."""

from __future__ import annotations

import json
import random

import pytest
import tokenizers

from llm_tokenizer import Tokenizer, compile_tokenizer

LETTERS = "ab \u00e9\u00df\u4f60\u597d\u4e2d\u4e8c\U0001f600\U0001f601"


def byte_alphabet() -> list[str]:
    """Returns how a byte-level vocabulary spells each byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(256, 512))
    return [chr(b) if b in printable else chr(next(others)) for b in range(256)]


def text_at_random(draw: random.Random, length: int) -> str:
    return "".join(draw.choice(LETTERS) for _ in range(length))


def merges_at_random(draw: random.Random, symbols: list[str], count: int) -> list[tuple[str, str]]:
    """Returns merges of neighbours in a text, each possible when it is made."""
    merges: list[tuple[str, str]] = []
    for _ in range(count):
        if len(symbols) < 2:
            break
        i = draw.randrange(len(symbols) - 1)
        pair = (symbols[i], symbols[i + 1])
        if pair not in merges:
            merges.append(pair)
        symbols[i : i + 2] = ["".join(pair)]
    draw.shuffle(merges)
    return merges


def description(model: dict, byte_level: bool) -> dict:
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": level if byte_level else None,
        "post_processor": None,
        "decoder": level if byte_level else None,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "fuse_unk": False} | model,
    }


def compare(described: dict, draw: random.Random) -> None:
    text = json.dumps(described)
    theirs = tokenizers.Tokenizer.from_str(text)
    ours = Tokenizer(compile_tokenizer(text.encode()))
    for _ in range(20):
        sample = text_at_random(draw, draw.randrange(1, 60))
        wanted = theirs.encode(sample)
        found = ours.encode(sample)
        assert (found.ids, found.offsets) == (wanted.ids, wanted.offsets), sample
        assert ours.encode_ids(sample) == wanted.ids, sample


@pytest.mark.parametrize("ignore_merges", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_merges_of_bytes(seed, ignore_merges):
    draw = random.Random(seed)
    alphabet = byte_alphabet()
    symbols = [alphabet[b] for b in text_at_random(draw, 40).encode()]
    merges = merges_at_random(draw, symbols, 60)
    tokens = dict.fromkeys([*alphabet, *("".join(pair) for pair in merges)])
    # A shuffled merge may need what only a later one makes: it stays in the list and never happens.
    model = {"vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges, "ignore_merges": ignore_merges}
    compare(description(model, byte_level=True), draw)


@pytest.mark.parametrize("seed", range(30))
def test_merges_of_characters_with_byte_fallback(seed):
    draw = random.Random(seed)
    known = draw.sample(LETTERS, 7)
    symbols = [c for c in text_at_random(draw, 60) if c in known]
    merges = merges_at_random(draw, symbols, 40)
    tokens = dict.fromkeys([*(f"<0x{b:02X}>" for b in range(256)), *known, *("".join(pair) for pair in merges)])
    model = {"vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges, "byte_fallback": True}
    compare(description(model, byte_level=False), draw)
