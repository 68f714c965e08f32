"""`mote pull`, and what every verb does with a name that is not in the store."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from llm_runner.errors import ArgumentError, FileError
from llm_runner.labels import count_text
from mote.extras import check_installed
from mote.store.catalog import Entry, Store
from mote.store.download import check_free_space
from mote.store.hub import Repository, look_up
from mote.store.local import local_file
from mote.store.names import Name, parse_name
from mote.store.pull import choose_remote, estimate, export_path, pull_file, record
from mote.units import human_bytes


def run(name: str, requantize: bool, yes: bool, quiet: bool, debug: bool) -> None:
    started = time.perf_counter()
    parsed = parse_name(name)
    if parsed is None:
        raise ArgumentError(
            f"'{name}': must be org/name, org/name:file or org/name@revision of the hub; a folder: mote export"
        )
    entry, is_new = obtain(parsed, yes=yes, quiet=quiet, requantize=requantize)
    if quiet:
        return
    how = f"{human_bytes(entry.bytes)} in {time.perf_counter() - started:.1f} s" if is_new else "is up to date"
    click.echo(f"{parsed}: {entry.path.name}, {how}")


def local_path(name: Name) -> str:
    """Returns the file that a name means: that in the store, without network, or else it is pulled.

    Errors: FileError if there is none, or several
    """
    store = Store()
    if store.find(name) is None and (name.tag or not store.entries(name)):
        entry, _ = obtain(name, yes=False, quiet=False)
        return str(entry.path)
    return str(local_file(str(name)))


def obtain(name: Name, *, yes: bool, quiet: bool, requantize: bool = False) -> tuple[Entry, bool]:
    """Pulls a model: downloads its file or, having asked, exports its checkpoint. All it says is on standard error.

    Returns: the file in the store, and whether it is new there   Errors: FileError, ArgumentError, MoteError of exports
    """
    store = Store()
    repository = look_up(name)
    if not repository.mote_files and not repository.is_checkpoint:
        raise FileError(f"{name.model}: has neither .mote files nor a checkpoint (config.json and .safetensors)")
    if not repository.mote_files:
        _ask(repository, yes, requantize)
    with store.lock(name, timeout=0) as is_ours:
        if is_ours:
            return _pull(store, repository, quiet, requantize)
    click.echo(f"another mote pulls {name.model}: waiting for it ...", err=True)
    with store.lock(name):
        return _pull(store, repository, quiet, requantize)


def _pull(store: Store, repository: Repository, quiet: bool, requantize: bool) -> tuple[Entry, bool]:
    if not repository.mote_files:
        return _export(store, repository, quiet, requantize)
    from llm_export.progress import Progress

    file = choose_remote(repository)
    total = repository.files[file].bytes
    show = sys.stderr.isatty() and not quiet
    if not show and not quiet:
        click.echo(f"pulling {repository.name.model}: {file}, {human_bytes(total)}", err=True)
    try:
        with Progress(show).stage("pull", total, "B") as bar:
            return pull_file(store, repository, file, bar.update)
    except KeyboardInterrupt:
        click.echo(f"\nwhat came is kept: mote pull {repository.name} goes on with it", err=True)
        raise


def _ask(repository: Repository, yes: bool, requantize: bool) -> None:
    """Says what an export would need and asks. Errors: ArgumentError where nobody can be asked; click.Abort for no."""
    name = repository.name
    check_installed("export", f"{name.model} is a checkpoint, not a .mote file; its export")
    path, recipe = export_path(Store(), repository, requantize)
    if path.is_file():
        return
    need = estimate(repository, recipe)
    facts = [
        repository.model_type,
        f"quantized by {repository.quantization}" if repository.quantization else "",
        count_text(repository.num_parameters) + " parameters" if repository.num_parameters else "",
        human_bytes(repository.checkpoint_bytes),
    ]
    about = f"{name.model} is a checkpoint ({', '.join(filter(None, facts))}), not a .mote file"
    needs = (
        f"Exporting it as {recipe} downloads {human_bytes(repository.checkpoint_bytes)}, writes about "
        f"{human_bytes(need.file_bytes)}, needs about {human_bytes(need.memory_bytes)} of memory and, after the "
        f"download, about {_minutes(need.seconds)}."
    )
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ArgumentError(f"{about}. {needs} Do it with: mote pull {name} --yes")
    click.echo(f"{about}.\n{needs}", err=True)
    click.confirm("Export it now?", abort=True, err=True)


def _export(store: Store, repository: Repository, quiet: bool, requantize: bool) -> tuple[Entry, bool]:
    path, recipe = export_path(store, repository, requantize)
    if path.is_file():
        return _entry_of(store, repository, path), False
    need = estimate(repository, recipe)
    check_free_space(path, need.file_bytes, str(repository.name))
    _check_cache(repository)
    from llm_export.api import export

    path.parent.mkdir(parents=True, exist_ok=True)
    report = export(
        repository.name.repo, path, recipe=recipe, requantize=requantize, revision=repository.commit or None,
        show_progress=False if quiet else None,
    )  # fmt: skip
    for note in report.notes:
        click.secho(f"note: {note}", fg="yellow", err=True)
    record(path, repository, path.name, "export")
    return _entry_of(store, repository, path), True


def _check_cache(repository: Repository) -> None:
    """Errors: FileError if the hub's own cache, where the checkpoint goes, has no room for it."""
    from huggingface_hub import constants, try_to_load_from_cache

    found = try_to_load_from_cache(repository.name.repo, "config.json", revision=repository.commit)
    if not isinstance(found, str):
        check_free_space(Path(constants.HF_HUB_CACHE), repository.checkpoint_bytes, str(repository.name))


def _entry_of(store: Store, repository: Repository, path: Path) -> Entry:
    return next(entry for entry in store.entries(repository.name) if entry.path == path)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} minutes"
