"""Texts to vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Self, Unpack

import numpy as np

from llm_runner import _core
from llm_runner.arguments import checked_ids, checked_int
from llm_runner.errors import ArgumentError
from llm_runner.loaded import LoadedModel
from llm_runner.session_options import SessionOptions, native_session_options

EmbedInput = str | Sequence[int]


class Embeddings(NamedTuple):
    """Vectors with what they cost."""

    vectors: np.ndarray  # float32 [inputs, dimensions]
    num_tokens: list[int]  # that were read of each input


class Embedder:
    """What a model makes vectors with: threads and memory; `Model.embedder` opens it.

    Thread safety: any number of threads, which take turns.
    """

    def __init__(self, model: LoadedModel, **options: Unpack[SessionOptions]):
        self._core = _core.Embedder(model._core, native_session_options(options))

    def embed(
        self,
        texts: EmbedInput | Sequence[EmbedInput],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        dimensions: int | None = None,
        normalize: bool = True,
        truncate: bool = True,
        parse_special_tokens: bool = True,
    ) -> np.ndarray:
        """Returns the vector of a text, float32 [dimensions], or of each of several, float32 [texts, dimensions].

        texts: text, or token ids, which are taken as they are; what one gives does not depend on the others
        prompt_name: which of the model's prompts goes before each text, such as "query"; None: its default, if any
        prompt: another text that goes before each   dimensions: the first ones of each vector; None: all
        normalize: to length 1, after `dimensions`   truncate: a text that is too long loses its end; else it is refused
        parse_special_tokens: special tokens spelled in a text become their ids
        Errors: ArgumentError naming input or option; ContextFullError for a text that is too long; CancelledError
        """
        alone = isinstance(texts, str) or (len(texts) > 0 and not isinstance(texts[0], (str, Sequence, np.ndarray)))
        inputs: Any = [texts] if alone else texts
        found = self.embed_counted(
            inputs, prompt_name=prompt_name, prompt=prompt, dimensions=dimensions, normalize=normalize,
            truncate=truncate, parse_special_tokens=parse_special_tokens,
        )  # fmt: skip
        return found.vectors[0] if alone else found.vectors

    def embed_counted(
        self,
        texts: Sequence[EmbedInput],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        dimensions: int | None = None,
        normalize: bool = True,
        truncate: bool = True,
        parse_special_tokens: bool = True,
    ) -> Embeddings:
        """As `embed` of several inputs, with the number of tokens of each."""
        inputs = [_input(index, each) for index, each in enumerate(texts)]
        width = 0 if dimensions is None else checked_int("dimensions", dimensions, 1, 2**31 - 1)
        return Embeddings(
            *self._core.embed(
                inputs, _text("prompt_name", prompt_name), _text("prompt", prompt), width, normalize, truncate,
                parse_special_tokens,
            )
        )  # fmt: skip

    def cancel(self) -> None:
        """From any thread: the running or the next call raises CancelledError as soon as it can."""
        self._core.cancel()

    def check_golden(self) -> dict[str, Any]:
        """Replays the vectors that PyTorch computed at export; see `Session.check_golden`."""
        return json.loads(self._core.check_golden())

    def close(self) -> None:
        """Gives threads and memory back."""
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _input(index: int, value: EmbedInput) -> bytes | list[int]:
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    try:
        return checked_ids(value)
    except ArgumentError as error:
        raise ArgumentError(f"input {index}: {error}") from None


def _text(name: str, value: str | None) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ArgumentError(f"{name} must be a str, not {type(value).__name__}")
    return value
