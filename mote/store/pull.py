"""A file of a repository, or of an export, into the store."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from llm_runner import Model
from llm_runner.errors import FileError, MoteError
from mote.store.catalog import Entry, Manifest, Store, read_manifest, write_manifest
from mote.store.download import OnBytes, download
from mote.store.hub import HubFile, Repository
from mote.store.names import DEFAULT_TAG, Name, choose


@dataclass(frozen=True)
class Estimate:
    """What the export of a checkpoint needs, roughly."""

    file_bytes: int
    memory_bytes: int
    seconds: float


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


def export_path(store: Store, repository: Repository, requantize: bool = False) -> tuple[Path, str]:
    """Returns where the export of a checkpoint goes, and its recipe: the name's tag, or what keeps its quality."""
    recipe = repository.name.tag or ("stored" if repository.quantization and not requantize else DEFAULT_TAG)
    return store.folder(repository.name) / f"{repository.name.repo.partition('/')[2]}-{recipe}.mote", recipe


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


def estimate(repository: Repository, recipe: str) -> Estimate:
    """Returns what an export needs, from the measurements of docs/performance.md."""
    parameters = repository.num_parameters or repository.checkpoint_bytes // 2  # most checkpoints are in bfloat16
    if repository.quantization:
        parameters = 2 * repository.checkpoint_bytes  # most are of 4 bits; the hub counts what codes are packed in
    digits = [int(digit) for digit in recipe.removesuffix("w")[-1:] if digit.isdigit()]
    bits = digits[0] + 0.5 if digits else 16  # with scales
    return Estimate(
        # The embedding takes more bits.
        file_bytes=repository.checkpoint_bytes if recipe == "stored" else int(parameters * bits / 8 * 1.15),
        memory_bytes=int(0.5e9 + 0.15 * repository.checkpoint_bytes),
        seconds=25 + repository.checkpoint_bytes / 0.5e9,
    )


def _entry(store: Store, name: Name, path: Path) -> Entry:
    return next(entry for entry in store.entries(name) if entry.path == path)


def _is_of(manifest: Manifest, file: HubFile, repository: Repository) -> bool:
    return manifest.sha256 == file.sha256 if file.sha256 else manifest.commit == repository.commit


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
