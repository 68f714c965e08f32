"""`mote pull`, and what every verb does with a name that is not in the store."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

import click

from llm_runner.errors import ERROR_CODES, ArgumentError, FileError
from llm_runner.labels import count_text
from mote.extras import check_installed
from mote.store.catalog import Store
from mote.store.download import Download
from mote.store.exports import Export, check_free_space, estimate, export_of, source_of
from mote.store.hub import Repository
from mote.store.names import parse_name
from mote.units import human_bytes


def run(name: str, requantize: bool, yes: bool, quiet: bool, debug: bool) -> None:
    started = time.perf_counter()
    path, is_new = obtain(name, yes=yes, quiet=quiet, requantize=requantize)
    if quiet:
        return
    how = f"{human_bytes(path.stat().st_size)} in {time.perf_counter() - started:.1f} s" if is_new else "is up to date"
    click.echo(f"{name}: {path.name}, {how}")


def local_path(name: str) -> str:
    """Returns the file that a name means: that in the store, without network, or else it is pulled.

    Errors: FileError if there is none, ArgumentError if there are several
    """
    try:
        return str(Store().find(name))
    except FileError:
        path, _ = obtain(name, yes=False, quiet=False)
        return str(path)


def obtain(what: str, *, yes: bool, quiet: bool, requantize: bool = False) -> tuple[Path, bool]:
    """Pulls a model: downloads the file of a name or an URL or, having asked, exports its checkpoint or GGUF file.

    All it says is on standard error.
    Returns: the file in the store, and whether it is new there   Errors: FileError, ArgumentError, MoteError of exports
    """
    store = Store()
    with Download(store, what) as download:
        try:
            return _follow(download, quiet), download.is_new
        except KeyboardInterrupt:
            click.echo(f"\nwhat came is kept: mote pull {what} goes on with it", err=True)
            raise
        except FileError as error:
            name = parse_name(what)
            if error.code != ERROR_CODES["FILE_NOT_FOUND"] or name is None or download.repository is None:
                raise
            # The hub has no .mote file of it; what it has is exported, while nobody else pulls it.
            return _export(store, Repository.of(name, download.repository), yes, quiet, requantize)


def _follow(download: Download, quiet: bool) -> Path:
    """Goes through a download and shows it."""
    from llm_export.progress import Progress

    show = sys.stderr.isatty() and not quiet
    told: set[str] = set()
    with contextlib.ExitStack() as stack:
        bar = None
        for progress in download.run():
            if progress.waits_for and progress.waits_for not in told and not quiet:
                told.add(progress.waits_for)
                click.echo(f"{progress.waits_for}: waiting ...", err=True)
            if bar is None and progress.path is not None and progress.total_bytes >= 0:
                bar = stack.enter_context(Progress(show).stage("pull", progress.total_bytes, "B"))
                if not (show or quiet):
                    size = human_bytes(progress.total_bytes)
                    click.echo(f"pulling {progress.name}: {progress.path.name}, {size}", err=True)
            if bar is not None:
                bar.update(progress.bytes - bar.n)
    assert progress.path is not None
    return progress.path


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


def _export(store: Store, repository: Repository, yes: bool, quiet: bool, requantize: bool) -> tuple[Path, bool]:
    wanted = export_of(store, repository, requantize)
    path = wanted.path
    if path.is_file():
        return path, False
    _ask(repository, wanted, yes)
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
    store.record(path, repository, "export")
    return path, True


def _check_cache(repository: Repository, wanted: Export) -> None:
    """Errors: FileError if the hub's own cache, where what is exported goes, has no room for it."""
    from huggingface_hub import constants, try_to_load_from_cache

    found = try_to_load_from_cache(repository.name.repo, wanted.first, revision=repository.commit)
    if not isinstance(found, str):
        check_free_space(Path(constants.HF_HUB_CACHE), wanted.bytes, str(repository.name))


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} minutes"
