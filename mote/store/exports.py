"""What an export makes of a repository without .mote files: of a checkpoint, or of one of its GGUF files."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from llm_runner.errors import FileError
from mote.store.catalog import Store
from mote.store.download import KEEP_FREE_BYTES
from mote.store.hub import Repository, client, is_safe, plain_errors
from mote.store.names import DEFAULT_TAG, Name, choose
from mote.units import human_bytes

_PART = re.compile(r"(?P<stem>.+)-(?P<part>\d{5})-of-\d{5}")
_NO_MODEL = re.compile(r"mmproj|imatrix", re.IGNORECASE)  # image projectors and what quantizers have measured


@dataclass(frozen=True)
class Export:
    """path: of the file to make   bytes: to download   recipe: None for that of what a GGUF file stores"""

    path: Path
    bytes: int
    recipe: str | None
    requantizes: bool  # whether numbers that are quantized already are quantized again
    gguf: tuple[str, ...] = ()  # the parts of a GGUF file, the first first; (): the repository is a checkpoint

    @property
    def first(self) -> str:
        """A file that is there once the download was done."""
        return self.gguf[0] if self.gguf else "config.json"


@dataclass(frozen=True)
class Estimate:
    """What an export needs, roughly."""

    file_bytes: int
    memory_bytes: int
    seconds: float


def export_of(store: Store, repository: Repository, requantize: bool) -> Export:
    """Returns the export that a name means. The tag is the recipe, or a word of a GGUF file's name.

    Errors: FileError if there is nothing to export, or several GGUF files and no word that tells which
    """
    name, folder = repository.name, store.folder(str(repository.name))
    files = gguf_files(repository)
    chosen = choose(list(files), name.tag) if name.tag or not repository.is_checkpoint else None
    if chosen is not None:
        parts = files[chosen]
        path = chosen.removesuffix(".mote") + f"-{DEFAULT_TAG}.mote" if requantize else chosen
        total = sum(repository.files[part] for part in parts)
        return Export(folder / path, total, DEFAULT_TAG if requantize else None, requantize, parts)
    if repository.is_checkpoint:
        recipe = name.tag or ("stored" if repository.quantization and not requantize else DEFAULT_TAG)
        path = folder / f"{name.repo.partition('/')[2]}-{recipe}.mote"
        return Export(path, repository.checkpoint_bytes, recipe, requantize)
    if not files:
        raise FileError(
            f"{name.model}: has neither .mote nor GGUF files nor a checkpoint (config.json and .safetensors)"
        )
    known = ", ".join(str(Name(name.repo, name.revision, file.removesuffix(".mote"))) for file in files)
    what = f"has no GGUF file, or several, for '{name.tag}'" if name.tag else "has several GGUF files"
    raise FileError(f"{name.model}: {what}: say which: {known}")


def check_free_space(folder: Path, num_bytes: int, what: str) -> None:
    """Errors: FileError if the disk has no room for what an export needs."""
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if num_bytes + KEEP_FREE_BYTES > free:
        raise FileError(
            f"{what}: needs {human_bytes(num_bytes)} more in {folder}, where {human_bytes(free)} are free: "
            f"'mote list' and 'mote rm' make room, MOTE_HOME=FOLDER moves the store"
        )


def gguf_files(repository: Repository) -> dict[str, tuple[str, ...]]:
    """Returns the parts of each GGUF model, by the name that the file made of it has in the store."""
    found: dict[str, list[str]] = {}
    for path in sorted(repository.files):
        file = PurePosixPath(path)
        if file.suffix == ".gguf" and is_safe(path) and not _NO_MODEL.search(file.name):
            match = _PART.fullmatch(file.stem)
            stem = match["stem"] if match else file.stem
            found.setdefault(str(file.with_name(f"{stem}.mote")), []).append(path)
    return {name: tuple(parts) for name, parts in found.items()}


def estimate(repository: Repository, wanted: Export) -> Estimate:
    """Returns what an export needs, from the measurements of docs/performance.md."""
    parameters = repository.num_parameters or wanted.bytes // 2  # most checkpoints are in bfloat16
    if repository.quantization and not wanted.gguf:
        parameters = 2 * wanted.bytes  # most are of 4 bits; the hub counts what codes are packed in
    digits = [int(digit) for digit in (wanted.recipe or "").removesuffix("w")[-1:] if digit.isdigit()]
    bits = digits[0] + 0.5 if digits else 16  # with scales
    is_kept = wanted.recipe in (None, "stored")
    return Estimate(
        # The embedding takes more bits.
        file_bytes=wanted.bytes if is_kept else int(parameters * bits / 8 * 1.15),
        memory_bytes=int(0.5e9 + 0.15 * wanted.bytes),
        seconds=25 + wanted.bytes / 0.5e9,
    )


def source_of(repository: Repository, wanted: Export) -> str:
    """Returns what the exporter is given: the hub's name, or the GGUF file, downloaded to the hub's own cache.

    Errors: FileError of the hub
    """
    if not wanted.gguf:
        return repository.name.repo
    api = client()
    with plain_errors(repository.name):
        paths = [api.hf_hub_download(repository.name.repo, part, revision=repository.commit) for part in wanted.gguf]
    return paths[0]
