"""`mote list`."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime

import click

from mote.store.catalog import Entry, Store
from mote.units import human_bytes

WIDTH = 80
HEADINGS = ("name", "recipe", "size", "when")


def run(as_json: bool) -> None:
    store = Store()
    entries = store.list()
    click.echo(json.dumps([fields(entry) for entry in entries], indent=2) if as_json else table(store, entries))


def fields(entry: Entry) -> dict:
    """Returns an entry as `--json` has it: manifest (null if there is none), and of a part the bytes of the whole."""
    return {
        "name": entry.name,
        "path": str(entry.path),
        "bytes": entry.bytes,
        "complete": entry.is_whole,
        "total_bytes": entry.total_bytes or None,
        "manifest": entry.manifest or None,
    }


def table(store: Store, entries: list[Entry]) -> str:
    """Returns the lines that a person reads, of at most 80 columns where names allow."""
    if not entries:
        return f"no models in {store.models}: mote pull org/name"
    files = Counter(entry.model for entry in entries)
    rows = [HEADINGS, *(_row(entry, files[entry.model] > 1) for entry in entries)]
    widths = [max(len(row[i]) for row in rows) for i in range(1, len(HEADINGS))]
    room = WIDTH - sum(widths) - 2 * len(widths)
    widths = [min(max(len(row[0]) for row in rows), room), *widths]
    lines = []
    for name, *others in rows:
        if len(name) > room:  # a name is there to be copied, so it is never cut
            lines.append(name)
            name = ""
        recipe, size, when = others
        cells = (name.ljust(widths[0]), recipe.ljust(widths[1]), size.rjust(widths[2]), when.ljust(widths[3]))
        lines.append("  ".join(cells).rstrip())
    return "\n".join([*lines, f"{human_bytes(sum(entry.bytes for entry in entries))} in {store.models}"])


def _row(entry: Entry, with_tag: bool) -> tuple[str, str, str, str]:
    name = entry.name if with_tag else entry.model
    if not entry.is_whole:
        share = f"{entry.bytes / entry.total_bytes:.0%}" if entry.total_bytes else "a part"
        return name, f"({share} of it)", human_bytes(entry.bytes), "mote pull goes on"
    recipe = entry.manifest.get("recipe", "").partition(" ")[0]
    when = entry.manifest.get("pulled_at", "")
    return name, recipe or "?", human_bytes(entry.bytes), _local_day(when)


def _local_day(when: str) -> str:
    try:
        return datetime.fromisoformat(when).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return "?"
