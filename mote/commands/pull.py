"""`mote pull`, and what every verb does with a name that is not in the store."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from llm_runner.errors import ArgumentError
from llm_runner.labels import count_text
from mote.extras import check_installed
from mote.store.catalog import Entry, Store
from mote.store.download import check_free_space
from mote.store.exports import Export, estimate, export_of, source_of
from mote.store.hub import Repository, look_up
from mote.store.local import local_file
from mote.store.names import Name, parse_name
from mote.store.pull import choose_remote, pull_file, record
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
    """Pulls a model: downloads its file or, having asked, exports its checkpoint or GGUF file.

    All it says is on standard error.
    Returns: the file in the store, and whether it is new there   Errors: FileError, ArgumentError, MoteError of exports
    """
    store = Store()
    repository = look_up(name)
    wanted = None if repository.mote_files else export_of(store, repository, requantize)
    if wanted is not None and not wanted.path.is_file():
        _ask(repository, wanted, yes)
    with store.lock(name, timeout=0) as is_ours:
        if is_ours:
            return _pull(store, repository, wanted, quiet)
    click.echo(f"another mote pulls {name.model}: waiting for it ...", err=True)
    with store.lock(name):
        return _pull(store, repository, wanted, quiet)


def _pull(store: Store, repository: Repository, wanted: Export | None, quiet: bool) -> tuple[Entry, bool]:
    if wanted is not None:
        return _export(store, repository, wanted, quiet)
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


def _ask(repository: Repository, wanted: Export, yes: bool) -> None:
    """Says what an export would need and asks. Errors: ArgumentError where nobody can be asked; click.Abort for no."""
    name = repository.name
    what = f"{wanted.first} is a GGUF file of {name.model}" if wanted.gguf else f"{name.model} is a checkpoint"
    check_installed("export", f"{what}, not a .mote file; its export")
    if yes:
        return
    need = estimate(repository, wanted)
    facts = [
        repository.model_type,
        f"quantized by {repository.quantization}" if repository.quantization else "",
        count_text(repository.num_parameters) + " parameters" if repository.num_parameters else "",
        human_bytes(wanted.bytes),
    ]
    about = f"{what} ({', '.join(filter(None, facts))}), not a .mote file"
    needs = (
        f"Exporting it as {wanted.recipe or 'stored'} downloads {human_bytes(wanted.bytes)}, writes about "
        f"{human_bytes(need.file_bytes)}, needs about {human_bytes(need.memory_bytes)} of memory and, after the "
        f"download, about {_minutes(need.seconds)}."
    )
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ArgumentError(f"{about}. {needs} Do it with: mote pull {name} --yes")
    click.echo(f"{about}.\n{needs}", err=True)
    click.confirm("Export it now?", abort=True, err=True)


def _export(store: Store, repository: Repository, wanted: Export, quiet: bool) -> tuple[Entry, bool]:
    path = wanted.path
    if path.is_file():
        return _entry_of(store, repository, path), False
    check_free_space(path, estimate(repository, wanted).file_bytes, str(repository.name))
    _check_cache(repository, wanted)
    from llm_export.api import export

    path.parent.mkdir(parents=True, exist_ok=True)
    report = export(
        source_of(repository, wanted), path, recipe=wanted.recipe, requantize=wanted.requantizes,
        revision=None if wanted.gguf else repository.commit or None, show_progress=False if quiet else None,
    )  # fmt: skip
    for note in report.notes:
        click.secho(f"note: {note}", fg="yellow", err=True)
    record(path, repository, path.name, "export")
    return _entry_of(store, repository, path), True


def _check_cache(repository: Repository, wanted: Export) -> None:
    """Errors: FileError if the hub's own cache, where what is exported goes, has no room for it."""
    from huggingface_hub import constants, try_to_load_from_cache

    found = try_to_load_from_cache(repository.name.repo, wanted.first, revision=repository.commit)
    if not isinstance(found, str):
        check_free_space(Path(constants.HF_HUB_CACHE), wanted.bytes, str(repository.name))


def _entry_of(store: Store, repository: Repository, path: Path) -> Entry:
    return next(entry for entry in store.entries(repository.name) if entry.path == path)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} minutes"
