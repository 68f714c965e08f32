"""Calibrated weights on disk while an export lasts, so that one that was interrupted goes on where it stopped."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from llm_export.errors import FileError
from llm_export.quantize.affine import QuantizedWeight

FIELDS = QuantizedWeight._fields
LOCK = "lock"


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mote" / "calibration"


def key_of(files: Iterable[Path], words: Iterable[str]) -> str:
    """Returns a name for what is made of these files and words: other bytes give another."""
    sums = hashlib.sha256()
    for word in words:
        sums.update(hashlib.sha256(word.encode()).digest())
    for path in sorted(files):
        try:
            with open(path, "rb") as file:
                sums.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise FileError(f"{path}: cannot be read: {error.strerror}") from error
    return sums.hexdigest()[:32]


class Store(Mapping):
    """Source name -> QuantizedWeight, a file each, mapped when it is asked for. One process at a time has it.

    A file is whole or not there; one that cannot be read counts as not there.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def __getitem__(self, source: str) -> QuantizedWeight:
        try:
            found = load_file(self._path(source))
            return QuantizedWeight(*(found[name] for name in FIELDS))
        except (OSError, SafetensorError, KeyError) as error:
            raise KeyError(source) from error

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError("files do not tell the names of their sources")

    def __len__(self) -> int:
        return len(list(self.folder.glob("*.safetensors")))

    def __contains__(self, source: object) -> bool:
        return isinstance(source, str) and self._path(source).is_file() and self.get(source) is not None

    def put(self, source: str, weight: QuantizedWeight) -> None:
        """Errors: FileError if the disk is full or may not be written"""
        path = self._path(source)
        temporary = path.with_suffix(f".{os.getpid()}")
        try:
            save_file({name: part.contiguous() for name, part in weight._asdict().items()}, temporary)
            os.replace(temporary, path)
        except (OSError, SafetensorError) as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise FileError(f"{path}: cannot be written: {error}") from error

    def _path(self, source: str) -> Path:
        return self.folder / f"{hashlib.sha256(source.encode()).hexdigest()[:24]}.safetensors"


@contextlib.contextmanager
def store_of(key: str) -> Iterator[Store]:
    """Yields the store of a key. It is removed if the block succeeds, and stays for another try if not.

    Errors: FileError if another process has it or it cannot be written
    """
    folder = cache_folder() / key
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LOCK).touch()
    except OSError as error:
        hint = "set XDG_CACHE_HOME to another folder"
        raise FileError(f"{folder}: cannot be written: {error.strerror}; {hint}") from error
    with open(folder / LOCK) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise FileError(f"{folder}: another export calibrates the same checkpoint with the same text") from error
        yield Store(folder)
        shutil.rmtree(folder, ignore_errors=True)
