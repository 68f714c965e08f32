"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator
from pathlib import Path

from llm_export.errors import FileError


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a new file beside `path`, which takes its name if the block succeeds and is removed if not.

    The new file is on the disk before it has the name; until then `path` is as it was. Files beside it
    whose names begin with its name, such as those that backends keep during the check, are removed at the end.
    Errors: FileError naming `path` if it cannot be written; an OSError of the block about the new file becomes one too
    """
    temporary = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    if path.is_dir():
        raise FileError(f"{path}: is a folder: must be the name of the file to write")
    try:
        temporary.touch()
        yield temporary
        _sync(temporary)
        os.replace(temporary, path)
        with contextlib.suppress(OSError):  # so that the name survives a crash; not every system can sync a folder
            _sync(path.parent)
    except OSError as error:
        if error.filename not in (None, str(temporary)):
            raise
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            for file in temporary.parent.glob(glob.escape(temporary.name) + "*"):
                file.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
