"""What is in the store: `models/org/name/file.mote`, with `file.mote.json` that says where it came from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mote.store.core import core

if TYPE_CHECKING:
    from mote.store.hub import Repository


@dataclass(frozen=True)
class Entry:
    """A whole file of the store, or the part of one that a pull goes on with.

    name: with its tag   manifest: where it came from, {}: not known   total_bytes: of the whole file, 0: not known
    """

    name: str
    path: Path
    manifest: dict[str, Any]
    bytes: int
    total_bytes: int
    is_whole: bool
    last_used: int  # seconds since 1970

    @property
    def model(self) -> str:
        """The name without its tag."""
        return self.name.partition(":")[0]


class Store:
    """A folder of models. Thread safety: any thread, whatever other processes do."""

    def __init__(self, root: Path | str | None = None):
        """root: the folder; None: $MOTE_HOME, or one below the system's folder of caches"""
        self.core = core().Store(None if root is None else str(root))

    @property
    def models(self) -> Path:
        return Path(self.core.folder(None)) / "models"

    def folder(self, name: str) -> Path:
        """Returns where the files of a model are, or will be. Errors: ArgumentError"""
        return Path(self.core.folder(name))

    def list(self, name: str | None = None) -> list[Entry]:
        """Returns the files of a name, without a tag all of the model; of None all that there are. Parts are the last.

        Errors: FileError with the closest name if there is none of the name; ArgumentError
        """
        return _entries(self.core.list(name))

    def find(self, name: str) -> Path:
        """Returns the file that a name means, and notes that it is used.

        Errors: FileError if it is not there; ArgumentError, naming the files, if there are several
        """
        return Path(self.core.find(name))

    def remove(self, name: str) -> int:
        """Deletes the files of a name, parts too; returns the bytes that this freed.

        Errors: FileError; StateError while another process downloads one
        """
        return self.core.remove(name)

    def record(self, path: Path, repository: Repository, source: str) -> None:
        """Notes where a file comes from that is new in the store and was not downloaded; `source`: how it was made."""
        known = {
            "repo": repository.name.repo, "revision": repository.name.revision, "commit": repository.commit,
            "file": path.name, "source": source, "license": repository.license,
        }  # fmt: skip
        self.core.record(str(path), json.dumps(known))

    def evict(self, max_bytes: int) -> list[Entry]:
        """Deletes whole files, those first that were used longest ago, until all take at most max_bytes.

        What is being downloaded or open stays. Returns what was deleted
        """
        return _entries(self.core.evict(max_bytes))


def _entries(rows: list[tuple]) -> list[Entry]:
    return [
        Entry(name, Path(path), json.loads(manifest or "{}"), count, total, is_whole, last_used)
        for name, path, manifest, count, total, is_whole, last_used in rows
    ]
