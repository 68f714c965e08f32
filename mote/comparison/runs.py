"""Runs a file over tokens and keeps what its instructions compute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from llm_runner import Model
from llm_runner.errors import ArgumentError
from mote.comparison.methods import Method, method_of

CHUNK_TOKENS = 16  # in one call, which bounds the memory of what is kept


class Run:
    """A file on one of its backends, and a session that reads the tokens from the first on.

    about: `Model.describe()`   label: for people: the file, and the backend where it has several
    """

    def __init__(self, path: str, backend: str = "auto", threads: int = 0):
        self.model = Model.load(path, backend=backend)
        self.about: dict[str, Any] = self.model.describe()
        self.threads = threads
        several = len(self.about["targets"]) > 1
        self.label = f"{path} on {self.about['target']}" if several or backend != "auto" else path

    @property
    def delegates(self) -> list[str]:
        """The backends of the target that runs."""
        return [name for name in self.about["target"].split("+") if name != "cpu"]

    def calls(
        self, ids: Sequence[int], method: Method, forced: Mapping[int, np.ndarray] | None = None
    ) -> Iterator[tuple[dict[int, np.ndarray], np.ndarray]]:
        """Yields of each call the values that it computed, and the logits [T, vocab_size].

        Calls are of CHUNK_TOKENS tokens, or of one if the method is `decode`.
        forced: values that are put in the place of what was computed, so that what follows reads them; it may change
            between calls
        """
        session = self.model.session(context_length=len(ids), kv_dtype="float32", threads=self.threads or None)
        step = 1 if method.name == "decode" else CHUNK_TOKENS
        for first in range(0, len(ids), step):
            values: dict[int, np.ndarray] = {}

            def take(place: int, instruction: int, output: int, array: np.ndarray, values=values) -> np.ndarray | None:
                if place != method.place:
                    return None
                value = method.instructions[instruction].outputs[output]
                values[value] = array
                other = (forced or {}).get(value)
                return other if other is not None and other.shape == array.shape else None

            part = list(ids[first : first + step])
            with session.record(take):
                logits = session.decode(part[0])[None] if method.name == "decode" else session.verify(part)
            yield values, logits


def common_method(runs: Sequence[Run], asked: str | None) -> list[Method]:
    """Returns the method that all are run by: `verify`, or `decode` where a backend has fixed lengths of calls only.

    Errors: ArgumentError if `verify` was asked for and one of them cannot
    """
    if asked != "decode":
        found = [method_of(run.about, "verify") for run in runs]
        if all(method is not None for method in found):
            return [method for method in found if method is not None]
        if asked == "verify":
            names = [run.label for run, method in zip(runs, found, strict=True) if method is None]
            raise ArgumentError(f"--method verify: {names[0]} has calls of fixed lengths only: use --method decode")
    return [method for run in runs if (method := method_of(run.about, "decode")) is not None]
