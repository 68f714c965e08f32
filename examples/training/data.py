"""Turns documents and dialogues into an endless, repeatable sequence of token windows."""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch
from transformers import PreTrainedTokenizerFast

from .corpus import Document
from .dialogues import Dialogue
from .tokenizer import END_OF_TEXT

# Of the rows of a batch, those that hold dialogues; the others hold source files.
_DIALOGUE_SHARE = 0.3

Tokens = list[int]


class Dataset:
    """Tokenized source files and dialogues, sampled in an order that the seed fixes."""

    def __init__(
        self,
        documents: list[Document],
        dialogues: list[Dialogue],
        tokenizer: PreTrainedTokenizerFast,
        seed: int,
    ):
        sources = [document.with_header() + END_OF_TEXT for document in documents]
        chats = [tokenizer.apply_chat_template(chat, tokenize=False) for chat in dialogues]
        self._sources = tokenizer(sources, verbose=False)["input_ids"]
        self._chats = tokenizer(chats, verbose=False)["input_ids"]
        self._seed = seed

    @property
    def num_tokens(self) -> tuple[int, int]:
        """Tokens in the source files and in the dialogues."""
        return sum(map(len, self._sources)), sum(map(len, self._chats))

    def batches(self, rows: int, length: int) -> Iterator[torch.Tensor]:
        """Yields int64 [rows, length + 1] for ever; one call's sequence never changes."""
        num_chats = round(rows * _DIALOGUE_SHARE)
        rng = random.Random(f"{self._seed}:{rows}:{length}")
        sources = _windows(self._sources, length + 1, random.Random(rng.random()))
        chats = _aligned_windows(self._chats, length + 1, random.Random(rng.random()))
        while True:
            batch = [next(chats) for _ in range(num_chats)]
            batch += [next(sources) for _ in range(rows - num_chats)]
            yield torch.tensor(batch)


def _shuffled(items: list[Tokens], rng: random.Random) -> Iterator[Tokens]:
    while True:
        yield from rng.sample(items, len(items))


def _windows(items: list[Tokens], length: int, rng: random.Random) -> Iterator[Tokens]:
    buffer: Tokens = []
    for item in _shuffled(items, rng):
        buffer += item
        start = 0
        while len(buffer) - start >= length:
            yield buffer[start : start + length]
            start += length - 1  # the last target is the next window's first input
        buffer = buffer[start:]


def _aligned_windows(items: list[Tokens], length: int, rng: random.Random) -> Iterator[Tokens]:
    """Starts each window with a dialogue, as a prompt does when the model is used."""
    buffer: Tokens = []
    for item in _shuffled(items, rng):
        buffer += item
        if len(buffer) >= length:
            yield buffer[:length]
            buffer = []
