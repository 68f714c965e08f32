"""`mote rm`."""

from __future__ import annotations

import contextlib
import sys

import click

from llm_runner.errors import ArgumentError, FileError
from mote.store.catalog import Store
from mote.units import human_bytes


def run(names: tuple[str, ...], yes: bool, debug: bool) -> None:
    store = Store()
    entries = {entry.path: entry for text in names for entry in store.list(text)}
    total = human_bytes(sum(entry.bytes for entry in entries.values()))
    if not yes:
        for entry in entries.values():
            click.echo(f"{entry.name}  {human_bytes(entry.bytes)}", err=True)
        if not sys.stdin.isatty():
            raise ArgumentError(f"nobody can be asked whether to delete {total} here: give --yes")
        click.confirm(f"Delete {total}?", abort=True, err=True)
    freed = 0
    for text in names:
        with contextlib.suppress(FileError):  # another of the names meant it too
            freed += store.remove(text)
    click.echo(f"freed {human_bytes(freed)}")
