"""Vectors of texts. Requests take turns, a part of one at a time, and end when their client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np

from llm_runner import Embedder, Embeddings, Model
from llm_server.engine.steps import in_thread

TEXTS_AT_ONCE = 64


class Vectors:
    """The embedder of a model, opened when it is first asked for. It belongs to the event loop."""

    def __init__(self, model: Model, options: dict[str, Any]):
        """options: of `Model.embedder`"""
        self._model = model
        self._options = options
        self._embedder: Embedder | None = None
        self._turn = asyncio.Lock()

    async def embed(self, inputs: Sequence[str | list[int]], **options: Any) -> Embeddings:
        """As `Embedder.embed_counted`, of at least one input. Errors: those of it and of `Model.embedder`."""
        parts: list[Embeddings] = []
        for first in range(0, len(inputs), TEXTS_AT_ONCE):
            async with self._turn:
                if self._embedder is None:
                    self._embedder = await in_thread(self._model.embedder, **self._options)
                some = inputs[first : first + TEXTS_AT_ONCE]
                parts.append(await in_thread(self._embedder.embed_counted, some, **options))
        counts = [count for part in parts for count in part.num_tokens]
        return Embeddings(np.concatenate([part.vectors for part in parts]), counts)

    def close(self) -> None:
        """Gives threads and memory back."""
        if self._embedder is not None:
            self._embedder.close()
