"""`mote rm`."""

from __future__ import annotations

import sys

import click

from llm_runner.errors import ArgumentError, FileError
from mote.store.catalog import Entry, Store
from mote.store.hub import did_you_mean
from mote.store.names import Name, choose, parse_name
from mote.units import human_bytes


def run(names: tuple[str, ...], yes: bool, debug: bool) -> None:
    store = Store()
    entries: dict = {}
    for text in names:
        entries.update({entry.path: entry for entry in meant(store, text)})
    total = human_bytes(sum(entry.bytes for entry in entries.values()))
    if not yes:
        for entry in entries.values():
            click.echo(f"{entry.name}  {human_bytes(entry.bytes)}", err=True)
        if not sys.stdin.isatty():
            raise ArgumentError(f"nobody can be asked whether to delete {total} here: give --yes")
        click.confirm(f"Delete {total}?", abort=True, err=True)
    freed = sum(_remove(store, entry) for entry in entries.values())
    click.echo(f"freed {human_bytes(freed)}")


def meant(store: Store, text: str) -> list[Entry]:
    """Returns the files of a name, parts included: without a tag all. Errors: FileError with the closest names."""
    name = parse_name(text)
    entries = [*store.entries(name), *store.parts(name)] if name else []
    if name is not None and name.tag:
        tags = sorted({entry.name.tag for entry in entries})
        chosen = choose(tags, name.tag.removesuffix(".mote"))
        entries = [entry for entry in entries if entry.name.tag == chosen]
    if not entries:
        known = store.entries() + store.parts()
        close = did_you_mean(text, sorted({n for entry in known for n in (entry.name.model, str(entry.name))}))
        raise FileError(f"the store has no model '{text}'{close or '; mote list shows what it has'}")
    return entries


def _remove(store: Store, entry: Entry) -> int:
    model = Name(entry.name.repo, entry.name.revision)
    with store.lock(model, timeout=0) as is_ours:
        if not is_ours:
            raise FileError(f"{entry.name.model}: another mote pulls it now: stop that first, or wait for it")
        return store.remove(entry)
