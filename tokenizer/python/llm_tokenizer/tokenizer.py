"""Tokenizers, from a file in any format that models come with."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from llm_tokenizer import _core
from llm_tokenizer.errors import ArgumentError, FileError

# What a folder is searched for, in this order.
FILE_NAMES = (
    "tokenizer.json",
    "tekken.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "qwen.tiktoken",
)


@dataclass(frozen=True)
class Encoding:
    """The tokens of a text.

    ids: token ids
    offsets: for each id the characters [begin, end) that it stands for; (0, 0) for one that was put around the text
    type_ids: for each id which text of a pair it belongs to, as the post-processor numbers them
    """

    ids: list[int]
    offsets: list[tuple[int, int]]
    type_ids: list[int]

    def __len__(self) -> int:
        return len(self.ids)


def compile_tokenizer(
    file: bytes, name: str = "", *, pattern: str | None = None, special_tokens: Mapping[str, int] | None = None
) -> bytes:
    """Compiles the bytes of a tokenizer file into the form that a device uses straight from a mapped file.

    file: a tokenizer.json, SentencePiece .model, .tiktoken, or tekken.json
    name: of the file; tells known tiktoken vocabularies apart   pattern, special_tokens: of another tiktoken vocabulary
    Errors: InvalidTokenizerError naming the field, its value and what would be accepted
    """
    return _core.compile(bytes(file), name, pattern, list((special_tokens or {}).items()))


class Tokenizer:
    """A tokenizer; `from_file` makes it. Thread safety: any number of threads."""

    def __init__(self, compiled: bytes):
        """compiled: what `compile_tokenizer` returns. Errors: InvalidTokenizerError"""
        self._core = _core.Tokenizer(compiled)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        pattern: str | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Tokenizer:
        """Reads a tokenizer file, or the one that a folder holds.

        pattern, special_tokens: only for a tiktoken vocabulary that is not known by its name
        Errors: FileError; InvalidTokenizerError naming the field, its value and what would be accepted
        """
        file = _find(Path(path))
        if file.exists() and not file.is_file():  # nobody may ever write to a named pipe
            raise FileError(f"{file}: must be a regular file")
        try:
            content = file.read_bytes()
        except OSError as error:
            raise FileError(f"{file}: {error.strerror}") from error
        return cls(compile_tokenizer(content, file.name, pattern=pattern, special_tokens=special_tokens))

    @classmethod
    def from_str(cls, json: str) -> Tokenizer:
        """Reads the text of a tokenizer.json. Errors: InvalidTokenizerError"""
        return cls(compile_tokenizer(json.encode()))

    def encode(
        self, text: str, pair: str | None = None, add_special_tokens: bool = True, parse_special_tokens: bool = True
    ) -> Encoding:
        """Returns the tokens of a text, or of two texts that belong together.

        add_special_tokens: BOS and such, as the file asks
        parse_special_tokens: special tokens spelled in the text become their ids; False for text from a user
        Errors: ArgumentError if the text needs an unknown token where there is none, or a pattern gives up on it
        """
        if pair is not None:
            return self.encode_batch([(text, pair)], add_special_tokens, parse_special_tokens, num_threads=1)[0]
        return Encoding(*self._core.encode(_checked(text), add_special_tokens, parse_special_tokens, 2))

    def encode_ids(self, text: str, add_special_tokens: bool = True, parse_special_tokens: bool = True) -> list[int]:
        """Returns only the ids of a text, which costs less than their places."""
        return self._core.encode(_checked(text), add_special_tokens, parse_special_tokens, 0)[0]

    def encode_batch(
        self,
        texts: Iterable[str | tuple[str, str]],
        add_special_tokens: bool = True,
        parse_special_tokens: bool = True,
        *,
        num_threads: int = 0,
    ) -> list[Encoding]:
        """Returns the tokens of each text, or of each pair of texts, the same for any number of threads.

        num_threads: 0 for as many as the process may use   Errors: as encode, of the first text that has one
        """
        inputs = [(text, None) if isinstance(text, str) else _checked_pair(text) for text in texts]
        found = self._core.encode_batch(inputs, add_special_tokens, parse_special_tokens, 2, num_threads)
        return [Encoding(*parts) for parts in found]

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """Returns the text of token ids; ids that no token has are passed over. Errors: ArgumentError"""
        return self._core.decode(_checked_ids(ids), skip_special_tokens)

    def decode_batch(
        self, sequences: Iterable[Iterable[int]], skip_special_tokens: bool = True, *, num_threads: int = 0
    ) -> list[str]:
        """Returns the text of each sequence of ids, with as many threads as `encode_batch`."""
        return self._core.decode_batch([_checked_ids(ids) for ids in sequences], skip_special_tokens, num_threads)

    def id_to_token(self, id: int) -> str | None:
        """Returns how the file spells an id, None if no token has it."""
        return self._core.id_to_token(id) if 0 <= id < 2**31 else None

    def token_to_id(self, token: str) -> int | None:
        """Returns the id of a spelling, None if there is none."""
        return self._core.token_to_id(token)

    def is_special(self, id: int) -> bool:
        """Whether the id is a special token's."""
        return 0 <= id < 2**31 and self._core.is_special(id)

    @property
    def num_ids(self) -> int:
        """One more than the largest id."""
        return self._core.num_ids()


def _find(path: Path) -> Path:
    if not path.is_dir():
        return path
    for name in FILE_NAMES:
        if (path / name).is_file():
            return path / name
    others = sorted(path.glob("*.tiktoken")) + sorted(path.glob("*.model"))
    if others:
        return others[0]
    raise FileError(f"{path} has no tokenizer: looked for {', '.join(FILE_NAMES)}, *.tiktoken and *.model")


def _checked(text: str) -> str:
    if not isinstance(text, str):
        raise ArgumentError(f"text must be a str, not {type(text).__name__}")
    return text


def _checked_pair(pair: object) -> tuple[str, str]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ArgumentError(f"text must be a str or a pair of them, not {type(pair).__name__}")
    return _checked(pair[0]), _checked(pair[1])


def _checked_ids(ids: Iterable[int]) -> list[int]:
    try:
        checked = [operator.index(id) for id in ids]
    except TypeError as error:
        raise ArgumentError(f"ids must be integers: {error}") from None
    for id in checked:
        if not 0 <= id < 2**31:
            raise ArgumentError(f"id = {id}: must be 0 to 2^31-1")
    return checked
