"""What is in the store: `models/org/name/file.mote`, with `file.mote.json` that says where it came from."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from urllib.parse import quote, unquote

from mote.store.names import Name, choose

PART = ".part"
MANIFEST = ".json"


def home() -> Path:
    """Returns the folder of all that is kept for the user: $MOTE_HOME, or one below the system's folder of caches."""
    if given := os.environ.get("MOTE_HOME"):
        return Path(given).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "mote"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mote"


@dataclass(frozen=True)
class Manifest:
    """Where a file of the store came from."""

    repo: str
    revision: str  # as it was asked for, "" for the default branch
    commit: str
    file: str  # its path in the repository; of an export its name in the store
    source: str  # "download" or "export"
    sha256: str
    bytes: int
    recipe: str
    model_type: str
    license: str  # the hub's identifier, "" if it has none
    pulled_at: str  # ISO 8601, UTC


@dataclass(frozen=True)
class Entry:
    """A whole file of the store, or the part of one that a pull goes on with."""

    name: Name  # its tag: the file's name without .mote
    path: Path
    bytes: int
    manifest: Manifest | None = None  # None: somebody else put the file there
    total_bytes: int | None = None  # of a part only: what the whole file has; 0 if that is not known


class Store:
    """A folder of models. Thread safety: const but for `remove` and what is done inside `lock`."""

    def __init__(self, root: Path | None = None):
        self.root = root or home()
        self.models = self.root / "models"

    def folder(self, name: Name) -> Path:
        """Returns where the files of a model are, or will be."""
        owner, _, model = name.repo.partition("/")
        return self.models / owner / (model + (f"@{quote(name.revision, safe='')}" if name.revision else ""))

    def entries(self, name: Name | None = None) -> list[Entry]:
        """Returns the whole files of a model, or of all, by name."""
        return [
            Entry(self._name_of(path, path.name), path, path.stat().st_size, read_manifest(path))
            for path in self._files("*.mote", name)
        ]

    def parts(self, name: Name | None = None) -> list[Entry]:
        """Returns what pulls that did not end have left."""
        return [
            Entry(
                self._name_of(path, path.name.removesuffix(PART)), path, path.stat().st_size,
                total_bytes=_number(read_json(beside(path, MANIFEST)).get("bytes")),
            )
            for path in self._files("*.mote" + PART, name)
        ]  # fmt: skip

    def find(self, name: Name) -> Entry | None:
        """Returns the file that a name means among those in the store; None if it means none, or several."""
        entries = self.entries(name)
        folder = self.folder(name)
        by_file = {entry.path.relative_to(folder).as_posix(): entry for entry in entries}
        chosen = choose(list(by_file), name.tag)
        return by_file[chosen] if chosen is not None else None

    def remove(self, entry: Entry) -> int:
        """Deletes a file with its manifest and the folders that are then empty; returns the bytes that this freed."""
        for path in (entry.path, beside(entry.path, MANIFEST)):
            path.unlink(missing_ok=True)
        folder = entry.path.parent
        while folder != self.models and self.models in folder.parents:
            try:
                folder.rmdir()
            except OSError:
                break
            folder = folder.parent
        return entry.bytes

    @contextlib.contextmanager
    def lock(self, name: Name, timeout: float = -1) -> Iterator[bool]:
        """Keeps other processes from changing a model. Yields False if another one has it for `timeout` seconds."""
        from filelock import FileLock, Timeout

        folder = self.root / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / (quote(name.model, safe="") + ".lock"))
        try:
            lock.acquire(timeout=timeout)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    def _files(self, pattern: str, name: Name | None) -> list[Path]:
        found = self.folder(name).rglob(pattern) if name else self.models.glob(f"*/*/**/{pattern}")
        return sorted(path for path in found if path.is_file())

    def _name_of(self, path: Path, file: str) -> Name:
        owner, model, *folders = path.parent.relative_to(self.models).parts
        model, _, revision = model.partition("@")
        return Name(f"{owner}/{model}", unquote(revision), "/".join([*folders, file.removesuffix(".mote")]))


def beside(path: Path, suffix: str) -> Path:
    """Returns a path with something appended to its name."""
    return path.with_name(path.name + suffix)


def read_manifest(path: Path) -> Manifest | None:
    """Returns the manifest of a file, None if it has no whole one."""
    found = read_json(beside(path, MANIFEST))
    values = {field.name: found.get(field.name) for field in fields(Manifest)}
    is_whole = all(isinstance(value, int if name == "bytes" else str) for name, value in values.items())
    return Manifest(**values) if is_whole else None


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Writes the manifest of a file, whole or not at all."""
    write_json(beside(path, MANIFEST), asdict(manifest))


def read_json(path: Path) -> dict:
    """Returns the object in a file, {} if there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_json(path: Path, value: dict) -> None:
    """Writes an object to a file, whole or not at all."""
    new = beside(path, ".new")
    new.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    new.replace(path)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
