"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from llm_export.errors import FileError

# base/atomic_file.cpp names files in the same way, so that each removes what a killed process left of the other.
MARK = ".tmp-"
TEMPORARY = re.compile(r"[0-9a-f]{16}")
KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}


@contextlib.contextmanager
def replacing(path: Path, stays: Callable[[Path], bool] = lambda new: False) -> Iterator[Path]:
    """Yields a new file beside `path`, which takes its name if the block succeeds and is removed if not.

    The new file is on the disk before it has the name; until then `path` is as it was. A symbolic link stays, and the
    file that it leads to is replaced. Its mode is that of the file which it replaces, or what the umask lets. Files
    beside the new one whose names begin with its name, such as those that backends keep during the check, are removed
    at the end; so is what killed processes left of the same file.
    stays: asked about the new file when the block has succeeded: what is there stays, and the new one is removed
    Errors: FileError naming `path` if it cannot be written, or is there and no regular file; an OSError of the block
    about the new file becomes one too
    """
    temporary, descriptor = None, -1
    try:
        target = Path(os.path.realpath(path))
        replaced = _check_target(path, target)
        _remove_left(target)
        # Nobody may read the new one, while it is written, who could not read what it replaces.
        temporary, descriptor = _create(target, 0o666 if replaced is None else replaced | stat.S_IWUSR | stat.S_IRUSR)
        yield temporary
        if stays(temporary):
            return
        _sync(temporary)
        if (mode := _check_target(path, target)) is not None:
            with contextlib.suppress(PermissionError):  # a file system without permissions
                os.fchmod(descriptor, mode)
        os.replace(temporary, target)
        with contextlib.suppress(OSError):  # so that the name survives a crash; not every system can sync a folder
            _sync(target.parent)
    except OSError as error:
        if error.filename not in (None, str(temporary), str(path)) and temporary is not None:
            raise
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            _remove_all(temporary)
            os.close(descriptor)


@contextlib.contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yields a name beside `path` for a folder to be made, which takes its name if the block succeeds.

    What a failed block has left is removed.
    Errors: FileError if something is there that is no folder
    """
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise FileError(f"{path}: is there and is no folder: must be a folder, or the name of a new one")
    made = path.with_name(f"{path.stem}{MARK}{secrets.token_hex(8)}{path.suffix}")
    old = path.with_name(f"{path.stem}{MARK}{secrets.token_hex(8)}{path.suffix}")
    try:
        yield made
        if path.exists():
            os.rename(path, old)
        try:
            os.rename(made, path)
        except OSError:
            if old.exists():
                os.rename(old, path)
            raise
    except OSError as error:
        if error.filename not in (None, str(path), str(made)):
            raise
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        for folder in (made, old):
            shutil.rmtree(folder, ignore_errors=True)


def _check_target(path: Path, target: Path) -> int | None:
    """Returns the permissions of the file that is there, None if there is none.

    Errors: FileError if something is there that must not be replaced.
    """
    try:
        mode = os.lstat(target).st_mode
    except OSError:  # there is nothing; or writing says what is wrong
        return None
    if not stat.S_ISREG(mode):
        kind = KINDS.get(stat.S_IFMT(mode), "a device")
        raise FileError(f"{path}: is {kind}: must be a regular file, or the name of a new one")
    return mode & 0o777


def _create(target: Path, mode: int) -> tuple[Path, int]:
    """Returns a new file that nobody else has, and its descriptor, which holds the lock that says so.

    mode: its permissions, of which the system takes what the umask forbids
    """
    while True:
        temporary = target.with_name(f"{target.name}{MARK}{secrets.token_hex(8)}")
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            # Another process may have taken it for one that was left, before it was locked.
            if _lock(descriptor) and os.fstat(descriptor).st_nlink > 0:
                return temporary, descriptor
        except BaseException:
            _remove_all(temporary)
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Returns False if another process holds the file. Some file systems have no locks: there nobody does."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _remove_left(target: Path) -> None:
    """Removes what processes that write no more have left of a file."""
    prefix = target.name + MARK
    with contextlib.suppress(OSError):
        for name in {name[: len(prefix) + 16] for name in os.listdir(target.parent) if name.startswith(prefix)}:
            if TEMPORARY.fullmatch(name.removeprefix(prefix)) and not _is_held(target.with_name(name)):
                _remove_all(target.with_name(name))


def _is_held(temporary: Path) -> bool:
    try:
        descriptor = os.open(temporary, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _remove_all(temporary: Path) -> None:
    """Removes a file and those beside it whose names begin with its name."""
    with contextlib.suppress(OSError):
        for name in os.listdir(temporary.parent):
            if name.startswith(temporary.name):
                with contextlib.suppress(OSError):
                    os.unlink(temporary.with_name(name))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
