"""What a name means among the files of the store; the hub is not asked."""

from __future__ import annotations

from pathlib import Path

from mote.store.catalog import Store
from mote.store.names import is_name


def local_file(text: str) -> Path:
    """Returns the file of a path or of a name that is in the store; paths win.

    Errors: FileError that says how to get what is not there, ArgumentError with the files that a name may mean
    """
    if not is_name(text):
        return Path(text)
    from llm_runner.errors import FileError

    try:
        return Store().find(text)
    except FileError as error:
        said = str(error)
        raise FileError(f"{said}{' else' if said.endswith('?') else ''}: mote pull {text}") from None
