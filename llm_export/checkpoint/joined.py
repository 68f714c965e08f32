"""Files of two checkpoints as those of one: a model and what drafts for it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from llm_export.program.specs import StoredAs, StoredRows

if TYPE_CHECKING:
    from llm_export.checkpoint.weights import Rows, TensorFiles


class JoinedFiles:
    """The tensors of `files`, and those of `others` under names that begin with `prefix`. Thread safety: const."""

    def __init__(self, files: TensorFiles, prefix: str, others: TensorFiles):
        self._files, self._prefix, self._others = files, prefix, others
        self.place, self.kind = files.place, files.kind

    def _of(self, name: str) -> tuple[TensorFiles, str]:
        if name.startswith(self._prefix):
            return self._others, name.removeprefix(self._prefix)
        return self._files, name

    def names(self) -> Iterable[str]:
        return [*self._files.names(), *(f"{self._prefix}{name}" for name in self._others.names())]

    def needs_place(self, name: str) -> bool:
        return not name.startswith(self._prefix) and self._files.needs_place(name)

    def meta(self, name: str) -> Tensor:
        files, name = self._of(name)
        return files.meta(name)

    def read(self, name: str) -> Tensor:
        files, name = self._of(name)
        return files.read(name)

    def read_rows(self, name: str, start: int, stop: int) -> Tensor:
        files, name = self._of(name)
        return files.read_rows(name, start, stop)

    def computed_rows(self, name: str) -> Rows | None:
        files, name = self._of(name)
        return files.computed_rows(name)

    def stored_as(self, name: str) -> StoredAs | None:
        files, name = self._of(name)
        return files.stored_as(name)

    def stored_rows(self, name: str, start: int, stop: int) -> StoredRows:
        files, name = self._of(name)
        return files.stored_rows(name, start, stop)

    def path(self, name: str) -> Path:
        files, name = self._of(name)
        return files.path(name)
