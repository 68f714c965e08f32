"""What adapters add to a model."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from llm_runner import _core
from llm_runner.errors import ArgumentError
from llm_runner.labels import never_raises
from llm_runner.loaded import LoadedModel


class Adapter:
    """A .mote-adapter file in memory; `Model.load_adapter` reads it. Thread safety: immutable."""

    def __init__(self, model: LoadedModel, text: str):
        """text: FILE or FILE=WEIGHT"""
        self._core: _core.Adapter | None = _core.Adapter(model._core, text)
        self._about: dict[str, Any] = json.loads(self._core.describe())

    @property
    def name(self) -> str:
        """Of the file, without folder and ending."""
        return self._about["name"]

    @property
    def path(self) -> str:
        return self._about["path"]

    @property
    def weight(self) -> float:
        """What it is multiplied by unless another weight is given: 1, or that of the text that it was loaded by."""
        return self._open().weight()

    @property
    def memory_bytes(self) -> int:
        return self._about["bytes"]

    def _open(self) -> _core.Adapter:
        if self._core is None:
            raise ArgumentError(f"the adapter {self.name} is closed")
        return self._core

    def close(self) -> None:
        """Lets go of it. Sessions keep what they use."""
        self._core = None

    @never_raises
    def __repr__(self) -> str:
        return f"Adapter {self.name}: {self.memory_bytes / 1e6:.1f} MB" + ("" if self._core else ", closed")


# What stands for an adapter in a mix: its file, as FILE or FILE=WEIGHT, or itself, alone or with a weight.
AdapterLike = str | os.PathLike[str] | Adapter | tuple[Adapter | str | os.PathLike[str], float]


def mix_of(model: LoadedModel, adapters: AdapterLike | Iterable[AdapterLike]) -> list[tuple[_core.Adapter, float]]:
    """Returns native adapters with their weights. Errors: ArgumentError for what is none; those of reading a file."""
    return [_native(model, each) for each in _listed(adapters)]


def texts_of(adapters: Any) -> Any:
    """Returns adapters as the option of that name takes them; what is none stays, for the library to refuse."""
    if _is_one(adapters):
        return [_text(adapters)]
    if not isinstance(adapters, (list, tuple)):
        return adapters
    return [_text(each) if _is_one(each) else each for each in adapters]


def _is_one(given: Any) -> bool:
    adapter, _ = _pair(given)
    return isinstance(adapter, (str, os.PathLike, Adapter))


def _listed(adapters: Any) -> list[Any]:
    if _is_one(adapters):
        return [adapters]
    if not isinstance(adapters, Iterable):
        raise ArgumentError(f"adapters = {adapters!r}: must be adapters, their files or pairs of one and a weight")
    return list(adapters)


def _pair(given: Any) -> tuple[Any, float | None]:
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], (int, float)):
        return given[0], float(given[1])
    return given, None


def _text(given: Any) -> str:
    adapter, weight = _pair(given)
    if isinstance(adapter, Adapter):
        return f"{adapter.path}={adapter.weight if weight is None else weight!r}"
    if isinstance(adapter, (str, os.PathLike)):
        return os.fspath(adapter) + ("" if weight is None else f"={weight!r}")
    raise ArgumentError(f"adapters: {given!r}: must be an adapter, its file or a pair of one and a weight")


def _native(model: LoadedModel, given: Any) -> tuple[_core.Adapter, float]:
    adapter, weight = _pair(given)
    if not isinstance(adapter, Adapter):
        adapter, weight = Adapter(model, _text(given)), None
    return adapter._open(), adapter.weight if weight is None else weight
