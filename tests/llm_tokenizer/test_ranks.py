"""tiktoken and Tekken vocabularies give the ids and text of their libraries."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

import mistral_common
import pytest
import tiktoken
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

from llm_tokenizer import InvalidTokenizerError, Tokenizer
from tests.llm_tokenizer import oracle, texts, trained

SHIPPED = sorted((Path(mistral_common.__file__).parent / "data").glob("tekken_*.json"))
CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
R50K = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"


def candidates(step: int) -> list[str]:
    rng = random.Random(4)
    found = [*texts.FIXED, *texts.every_code_point(step)]
    size = 0
    while size < oracle.MEGABYTES * 1e6:
        found.append(texts.random_text(rng))
        size += len(found[-1].encode())
    return found


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
    for text in candidates(61):
        plain = theirs.encode_ordinary(text)
        found = by_name.encode_ids(text)
        assert found == plain, oracle.difference(text, found, plain)
        assert by_name.decode(plain) == theirs.decode(plain)
        ids = theirs.encode(text, allowed_special="all")
        assert by_pattern.encode_ids(text) == ids, repr(text[:200])
        assert by_pattern.encode_ids(text, parse_special_tokens=False) == plain


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
    for text in candidates(61):
        expected = theirs.encode(text, bos=True, eos=False)
        found = ours.encode_ids(text, parse_special_tokens=False)
        assert found == expected, oracle.difference(text, found, expected)
        assert ours.decode(expected[1:]) == text
