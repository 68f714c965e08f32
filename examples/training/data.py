"""Turns documents and dialogues into an endless, repeatable sequence of token windows."""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch
from transformers import PreTrainedTokenizerFast

from .corpus import Document
from .dialogues import Dialogue
from .tokenizer import END_OF_TEXT, space_splits

# Of the rows of a batch, those that hold dialogues; the others hold source files.
_DIALOGUE_SHARE = 0.3
# A prompt that ends in a space leaves the space as a token of its own, which never comes
# before a word in tokenized text; splitting a few words teaches what follows it.
_SPLIT_SHARE = 0.02

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
        self._splits = space_splits(tokenizer)
        self._seed = seed

    @property
    def num_tokens(self) -> tuple[int, int]:
        """Tokens in the source files and in the dialogues."""
        return sum(map(len, self._sources)), sum(map(len, self._chats))

    def batches(self, rows: int, length: int) -> Iterator[torch.Tensor]:
        """Yields int64 [rows, length + 1] for ever; one call's sequence never changes."""
        num_chats = round(rows * _DIALOGUE_SHARE)
        rng = random.Random(f"{self._seed}:{rows}:{length}")
        sources = _windows(self._shuffled(self._sources, rng.random()), length + 1)
        chats = _aligned_windows(self._shuffled(self._chats, rng.random()), length + 1)
        while True:
            batch = [next(chats) for _ in range(num_chats)]
            batch += [next(sources) for _ in range(rows - num_chats)]
            yield torch.tensor(batch)

    def _shuffled(self, items: list[Tokens], seed: float) -> Iterator[Tokens]:
        rng = random.Random(seed)
        while True:
            for item in rng.sample(items, len(items)):
                yield self._split_some(item, rng)

    def _split_some(self, item: Tokens, rng: random.Random) -> Tokens:
        tokens: Tokens = []
        for token in item:
            if rng.random() < _SPLIT_SHARE:
                tokens += self._splits.get(token, (token,))
            else:
                tokens.append(token)
        return tokens


def _windows(items: Iterator[Tokens], length: int) -> Iterator[Tokens]:
    buffer: Tokens = []
    for item in items:
        buffer += item
        start = 0
        while len(buffer) - start >= length:
            yield buffer[start : start + length]
            start += length - 1  # the last target is the next window's first input
        buffer = buffer[start:]


def _aligned_windows(items: Iterator[Tokens], length: int) -> Iterator[Tokens]:
    """Starts each window with a dialogue, as a prompt does when the model is used."""
    buffer: Tokens = []
    for item in items:
        buffer += item
        if len(buffer) >= length:
            yield buffer[:length]
            buffer = []
