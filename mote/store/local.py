"""What a name means among the files of the store; the hub is not asked."""

from __future__ import annotations

from pathlib import Path

from llm_runner.errors import FileError
from mote.store.catalog import Entry, Store
from mote.store.hub import did_you_mean
from mote.store.names import choose, is_name, parse_name


def local_file(text: str) -> Path:
    """Returns the file of a path or of a name that is in the store; paths win.

    Errors: FileError that says how to get what is not there, or which files a name may mean
    """
    name = parse_name(text) if is_name(text) else None
    if name is None:
        return Path(text)
    store = Store()
    entry = store.find(name)
    if entry is not None:
        return entry.path
    found = meant(store, text)
    if not found:
        close = closest(store, text)
        gets = f"mote pull {text}" if not close else f"else: mote pull {text}"
        raise FileError(f"'{text}' is no file, and the store has no such model{close or ':'} {gets}")
    whole = [str(entry.name) for entry in found if entry.total_bytes is None]
    if not whole:
        raise FileError(f"{text}: only a part has come: mote pull {text} goes on")
    raise FileError(f"{text}: the store has several files: say which: {', '.join(whole)}")


def meant(store: Store, text: str) -> list[Entry]:
    """Returns the files of a name, parts included: without a tag all."""
    name = parse_name(text)
    entries = [*store.entries(name), *store.parts(name)] if name else []
    if name is None or not name.tag:
        return entries
    chosen = choose(sorted({entry.name.tag for entry in entries}), name.tag.removesuffix(".mote"))
    return [entry for entry in entries if entry.name.tag == chosen]


def closest(store: Store, text: str) -> str:
    """Returns ": did you mean 'org/name'?" with the closest name in the store, "" if none is close."""
    known = store.entries() + store.parts()
    return did_you_mean(text, sorted({name for entry in known for name in (entry.name.model, str(entry.name))}))
