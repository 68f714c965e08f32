"""`mote rm`."""

from __future__ import annotations

import sys

import click

from llm_runner.errors import ArgumentError, FileError
from mote.store.catalog import Entry, Store
from mote.store.local import closest, meant
from mote.store.names import Name
from mote.units import human_bytes


def run(names: tuple[str, ...], yes: bool, debug: bool) -> None:
    store = Store()
    entries: dict = {}
    for text in names:
        found = meant(store, text)
        if not found:
            raise FileError(f"the store has no model '{text}'{closest(store, text) or '; mote list shows what it has'}")
        entries.update({entry.path: entry for entry in found})
    total = human_bytes(sum(entry.bytes for entry in entries.values()))
    if not yes:
        for entry in entries.values():
            click.echo(f"{entry.name}  {human_bytes(entry.bytes)}", err=True)
        if not sys.stdin.isatty():
            raise ArgumentError(f"nobody can be asked whether to delete {total} here: give --yes")
        click.confirm(f"Delete {total}?", abort=True, err=True)
    freed = sum(_remove(store, entry) for entry in entries.values())
    click.echo(f"freed {human_bytes(freed)}")


def _remove(store: Store, entry: Entry) -> int:
    model = Name(entry.name.repo, entry.name.revision)
    with store.lock(model, timeout=0) as is_ours:
        if not is_ours:
            raise FileError(f"{entry.name.model}: another mote pulls it now: stop that first, or wait for it")
        return store.remove(entry)
