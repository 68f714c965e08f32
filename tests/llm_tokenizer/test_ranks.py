"""tiktoken and Tekken vocabularies give the ids and text of their libraries."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import mistral_common
import pytest
import tiktoken
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

from llm_tokenizer import InvalidTokenizerError, Tokenizer
from tests.llm_tokenizer import corpus, oracle, texts, trained

SHIPPED = sorted((Path(mistral_common.__file__).parent / "data").glob("tekken_*.json"))
CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
R50K = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"


def assert_same_ids(text: str, found: list[int], expected: list[int]) -> None:
    assert found == expected, oracle.difference(text, found, expected)


def batches(seed: int) -> Iterator[list[str]]:
    yield texts.FIXED
    yield from corpus.documents(oracle.MEGABYTES, oracle.SEED + seed)


def ranks() -> dict[bytes, int]:
    """The vocabulary of a trained tokenizer, in the order of its ids."""
    description = json.loads(trained.byte_level())
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    byte_of = {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}
    vocabulary = sorted(description["model"]["vocab"].items(), key=lambda item: item[1])
    return {bytes(byte_of[c] for c in token): rank for rank, (token, _) in enumerate(vocabulary)}


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("cl100k_base", CL100K), ("r50k_base", R50K), ("o200k_base", trained.PATTERNS["o200k"]), ("llama3", trained.PATTERNS["llama3"])],
)  # fmt: skip
def test_tiktoken(name, pattern, tmp_path):
    vocabulary = ranks()
    special = {"<|endoftext|>": len(vocabulary) + 3, "<|im_start|>": len(vocabulary) + 9}
    path = tmp_path / f"{name}.tiktoken"
    path.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in vocabulary.items()))
    theirs = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=vocabulary, special_tokens=special)
    by_name = Tokenizer.from_file(path)
    by_pattern = Tokenizer.from_file(path, pattern=pattern, special_tokens=special)
    for number, batch in enumerate(batches(4)):
        plain = theirs.encode_ordinary_batch(batch, num_threads=1)
        if [by_name.encode_ids(text) for text in batch] != plain:
            oracle.fail_on_shortest(
                batch, lambda text: assert_same_ids(text, by_name.encode_ids(text), theirs.encode_ordinary(text))
            )
        assert by_name.decode_batch(plain) == theirs.decode_batch(plain, num_threads=1) == batch
        if number % 4 == 0:
            assert [e.ids for e in by_pattern.encode_batch(batch)] == theirs.encode_batch(
                batch, allowed_special="all", num_threads=1
            )
            assert [by_pattern.encode_ids(text, parse_special_tokens=False) for text in batch] == plain
    for text in texts.FIXED:
        expected = theirs.encode_ordinary(text)
        starts = [begin for begin, _ in by_name.encode(text).offsets]
        assert starts == theirs.decode_with_offsets(expected)[1]


UNKNOWN_PATTERNS = {
    "possessive": r"\p{L}{1,3}+|\p{N}{2}+|\s++|[^\s\p{L}\p{N}]{1,2}+",
    "possessive_backtracks": r"\p{L}{1,3}+e|\p{L}|[0-9]{2,}+|\s",
    "gaps": r"\p{L}+|\p{N}{1,3}",
    "borders": r"^\w+|\w+$|\b\w|\w\b|\B\w\B|\W+",
    "words": r"\w+|\s+|[^\w\s]",
    "flags": r"(?i:the|and)|(?s:..)|\S|\s",
    "outside": r"\P{L}{1,4}|\p{Lu}?\P{Lu}+",
    "lazy": r"\S{1,4}?\s|\S{3}?|\S|\s",
    "gpt4o_without_possession": r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s*[\r\n]|\s+(?!\S)|\s+",
}


@pytest.mark.parametrize("name", UNKNOWN_PATTERNS)
def test_unknown_patterns_of_tiktoken(name, tmp_path):
    vocabulary = ranks()
    path = tmp_path / "mine.tiktoken"
    path.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in vocabulary.items()))
    pattern = UNKNOWN_PATTERNS[name]
    theirs = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=vocabulary, special_tokens={})
    ours = Tokenizer.from_file(path, pattern=pattern)
    for batch in [texts.FIXED, *corpus.documents(min(oracle.MEGABYTES, 2), oracle.SEED + 5)]:
        plain = theirs.encode_ordinary_batch(batch, num_threads=1)
        if [ours.encode_ids(text) for text in batch] != plain:
            oracle.fail_on_shortest(
                batch, lambda text: assert_same_ids(text, ours.encode_ids(text), theirs.encode_ordinary(text))
            )


def test_tiktoken_without_a_known_name(tmp_path):
    path = tmp_path / "mine.tiktoken"
    path.write_bytes(b"YQ== 0\n")
    with pytest.raises(InvalidTokenizerError, match="mine.tiktoken.*give the pattern"):
        Tokenizer.from_file(path)
    with pytest.raises(InvalidTokenizerError, match="byte 0x00 has no rank"):
        Tokenizer.from_file(path, pattern=r"\w+|\W+")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_tekken(path):
    theirs = Tekkenizer.from_file(path)
    ours = Tokenizer.from_file(path)
    for batch in batches(6):
        expected = [theirs.encode(text, bos=True, eos=False) for text in batch]
        found = [ours.encode_ids(text, parse_special_tokens=False) for text in batch]
        if found != expected:
            oracle.fail_on_shortest(
                batch,
                lambda text: assert_same_ids(
                    text, ours.encode_ids(text, parse_special_tokens=False), theirs.encode(text, bos=True, eos=False)
                ),
            )
        assert ours.decode_batch(expected) == batch
    for text in texts.FIXED:
        ids = theirs.encode(text, bos=False, eos=True)
        assert ours.decode(ids) == theirs.decode(ids)
