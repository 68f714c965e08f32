"""A file of a repository, or of an export, into the store."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from llm_runner import Model
from llm_runner.errors import FileError, MoteError
from mote.store.catalog import Entry, Manifest, Store, read_manifest, write_manifest
from mote.store.download import OnBytes, download
from mote.store.hub import HubFile, Repository
from mote.store.names import Name, choose


def choose_remote(repository: Repository) -> str:
    """Returns the .mote file of a repository that its name means. Errors: FileError with those that there are."""
    files = repository.mote_files
    chosen = choose(files, repository.name.tag)
    if chosen is None:
        name = repository.name
        known = ", ".join(f"{Name(name.repo, name.revision, file.removesuffix('.mote'))}" for file in files)
        what = f"has no file, or several, for '{name.tag}'" if name.tag else "has several files"
        raise FileError(f"{name.model}: {what}: say which: {known}")
    return chosen


def pull_file(store: Store, repository: Repository, file: str, on_bytes: OnBytes) -> tuple[Entry, bool]:
    """Downloads a .mote file of a repository; the caller holds the lock.

    Returns: the file, and whether it is another one than before   Errors: as `download`
    """
    wanted = repository.files[file]
    path = store.folder(repository.name) / file
    manifest = read_manifest(path)
    if path.is_file() and manifest and path.stat().st_size == wanted.bytes and _is_of(manifest, wanted, repository):
        return _entry(store, repository.name, path), False
    sha256 = download(repository, wanted, path, on_bytes)
    record(path, repository, file, "download", sha256)
    return _entry(store, repository.name, path), True


def record(path: Path, repository: Repository, file: str, source: str, sha256: str = "") -> Manifest:
    """Writes the manifest of a file that is new in the store."""
    about = provenance(path)
    manifest = Manifest(
        repo=repository.name.repo,
        revision=repository.name.revision,
        commit=repository.commit,
        file=file,
        source=source,
        sha256=sha256 or _sha256(path),
        bytes=path.stat().st_size,
        recipe=about.get("recipe", ""),
        model_type=about.get("model_type", ""),
        license=repository.license,
        pulled_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    write_manifest(path, manifest)
    return manifest


def provenance(path: Path) -> dict[str, Any]:
    """Returns what a file says about how it was made; {} where this build cannot read it."""
    try:
        with Model.load(path) as model:
            return model.describe()["provenance"]
    except MoteError:
        return {}


def _entry(store: Store, name: Name, path: Path) -> Entry:
    return next(entry for entry in store.entries(name) if entry.path == path)


def _is_of(manifest: Manifest, file: HubFile, repository: Repository) -> bool:
    return manifest.sha256 == file.sha256 if file.sha256 else manifest.commit == repository.commit


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
