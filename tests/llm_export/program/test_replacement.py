"""A file is replaced whole, or stays as it was and nothing lies beside it."""

import errno
import fcntl
import functools
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from llm_export.errors import FileError
from llm_export.program.replacement import replacing


def test_a_new_file_takes_the_name_when_it_is_whole(tmp_path):
    path = tmp_path / "m.mote"
    path.write_bytes(b"old")
    with replacing(path) as new:
        new.write_bytes(b"new")
        assert path.read_bytes() == b"old"
        assert new.parent == tmp_path
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["m.mote"]


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "m.mote"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), replacing(path) as new:
        new.write_bytes(b"new")
        raise RuntimeError("no more")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.mote"]


def test_the_file_is_on_the_disk_before_it_has_the_name_and_the_name_after(tmp_path, monkeypatch):
    path, done = tmp_path / "m.mote", []
    sync, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (done.append(Path(os.readlink(f"/proc/self/fd/{fd}"))), sync(fd)))
    monkeypatch.setattr(os, "replace", lambda old, new: (done.append("renamed"), rename(old, new)))
    with replacing(path) as new:
        new.write_bytes(b"new")
    assert done == [new, "renamed", tmp_path]


@pytest.mark.parametrize("umask", [0o022, 0o077])
@pytest.mark.parametrize("replaced", [None, 0o600, 0o640, 0o444, 0o755])
def test_the_mode_is_that_of_the_replaced_file_or_follows_the_umask(tmp_path, umask, replaced):
    path = tmp_path / "m.mote"
    if replaced is not None:
        path.touch()
        path.chmod(replaced)
    before = os.umask(umask)
    try:
        with replacing(path) as new:
            written = os.stat(new).st_mode & 0o777
            new.write_bytes(b"new")
    finally:
        os.umask(before)
    expected = 0o666 & ~umask if replaced is None else replaced
    assert os.stat(path).st_mode & 0o777 == expected
    assert not written & ~(expected | 0o600), "others could read it while it was written"


def test_a_folder_that_cannot_be_synced_does_not_matter(tmp_path, monkeypatch):
    sync = os.fsync

    def only_files(descriptor):
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(22, "Invalid argument")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", only_files)
    with replacing(tmp_path / "m.mote") as new:
        new.write_bytes(b"new")
    assert (tmp_path / "m.mote").read_bytes() == b"new"


@pytest.mark.parametrize("name", ["missing/m.mote", "."])
def test_what_cannot_be_written_is_a_file_error(tmp_path, name):
    with pytest.raises(FileError, match=f"^{tmp_path / name}: "), replacing(tmp_path / name):
        pytest.fail("the block ran")


def test_a_full_disk_is_told_with_the_name_that_the_user_gave(tmp_path, monkeypatch):
    path = tmp_path / "m.mote"
    with pytest.raises(FileError, match=f"^{path}: cannot be written: No space left"), replacing(path):
        raise OSError(28, "No space left on device")
    assert os.listdir(tmp_path) == []


def test_a_new_file_that_cannot_be_looked_at_is_removed(tmp_path, monkeypatch):
    def fail(descriptor):
        monkeypatch.undo()
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    path = tmp_path / "m.mote"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fstat", fail)
    with pytest.raises(FileError, match=r"m\.mote: cannot be written: Input/output error"), replacing(path):
        pass
    assert os.listdir(tmp_path) == ["m.mote"]


def test_an_error_of_another_file_stays_itself(tmp_path):
    with pytest.raises(FileNotFoundError, match="other"), replacing(tmp_path / "m.mote"):
        (tmp_path / "other").read_bytes()
    assert os.listdir(tmp_path) == []


def leave(path: Path, *, is_held: bool = False) -> tuple[Path, int]:
    """Makes what a killed process leaves, or what one that still writes has."""
    left = path.with_name(path.name + ".tmp-0123456789abcdef")
    left.write_bytes(b"half")
    left.with_name(left.name + ".xnnpack-cache").write_bytes(b"packed")
    descriptor = os.open(left, os.O_RDONLY)
    if is_held:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return left, descriptor


def test_what_a_killed_process_left_is_removed(tmp_path):
    path = tmp_path / "m.mote"
    os.close(leave(path)[1])
    (tmp_path / "m.mote.tmp-fedcba9876543210.xnnpack+cpu-cache").touch()  # of a file that has its name since
    others = {"m.mote.tmp-notes", "other.mote.tmp-0123456789abcdef"}
    for name in others:
        (tmp_path / name).touch()
    with replacing(path) as new:
        assert set(os.listdir(tmp_path)) == {new.name, *others}
    assert set(os.listdir(tmp_path)) == {"m.mote", *others}


def test_what_another_process_still_writes_stays(tmp_path):
    path = tmp_path / "m.mote"
    left, descriptor = leave(path, is_held=True)
    with replacing(path) as new:
        assert new != left
    os.close(descriptor)
    assert left.exists() and left.with_name(left.name + ".xnnpack-cache").exists()


def test_what_lies_beside_the_new_file_goes_with_it(tmp_path):
    with replacing(tmp_path / "m.mote") as new:
        new.with_name(new.name + ".xnnpack-cache").touch()
        new.with_name(new.name + "-00000012.xnnpack-cache").touch()
    assert os.listdir(tmp_path) == ["m.mote"]


def test_a_symbolic_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "below").mkdir()
    link = tmp_path / "m.mote"
    link.symlink_to("below/real.mote")
    for content in (b"first", b"second"):
        with replacing(link) as new:
            assert new.parent == tmp_path / "below"
            new.write_bytes(content)
        assert link.is_symlink()
        assert (tmp_path / "below" / "real.mote").read_bytes() == content


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("a named pipe", os.mkfifo),
        ("a folder", os.mkdir),
        ("a device", lambda path: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))),
        ("a socket", lambda path: os.mknod(path, stat.S_IFSOCK | 0o600)),
    ],
)
@pytest.mark.parametrize("is_linked", [False, True])
def test_what_is_no_regular_file_is_refused_and_stays(tmp_path, kind, make, is_linked):
    path = tmp_path / "m.mote"
    try:
        make(tmp_path / "target" if is_linked else path)
    except PermissionError:
        pytest.skip("only root makes devices")
    if is_linked:
        path.symlink_to("target")
    before = os.stat(path)
    with pytest.raises(FileError, match=f"^{path}: is {kind}: must be a regular file"), replacing(path):
        pytest.fail("the block ran")
    assert os.stat(path) == before
    assert len(os.listdir(tmp_path)) == 1 + is_linked


def test_a_pipe_that_took_the_name_since_is_not_replaced(tmp_path):
    path = tmp_path / "m.mote"
    with pytest.raises(FileError, match="is a named pipe"), replacing(path):
        os.mkfifo(path)
    assert os.listdir(tmp_path) == ["m.mote"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_leaves_nothing(tmp_path, number, status):
    code = (
        "import pathlib, sys, time\nfrom mote.endings import end_on_signals\n"
        "from llm_export.program.replacement import replacing\n"
        "end_on_signals()\n"
        "try:\n"
        "    with replacing(pathlib.Path(sys.argv[1])) as new:\n"
        "        print('writes', flush=True)\n        time.sleep(60)\n"
        "except KeyboardInterrupt:\n    sys.exit(130)\n"
    )
    path = tmp_path / "m.mote"
    command = [sys.executable, "-c", code, path]
    # What runs the tests may ignore signals, and a process inherits that.
    defaults = functools.partial(signal.signal, number, signal.SIG_DFL)
    with subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=defaults) as process:
        assert process.stdout.readline() == b"writes\n"
        assert len(os.listdir(tmp_path)) == 1
        process.send_signal(number)
        assert process.wait(60) == status
    assert os.listdir(tmp_path) == []


def test_what_a_kill_leaves_is_removed_by_the_next(tmp_path):
    code = (
        "import os, pathlib, sys\nfrom llm_export.program.replacement import replacing\n"
        "with replacing(pathlib.Path(sys.argv[1])) as new:\n    os.kill(os.getpid(), 9)\n"
    )
    path = tmp_path / "m.mote"
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == -9
    assert len(os.listdir(tmp_path)) == 1
    with replacing(path):
        pass
    assert os.listdir(tmp_path) == ["m.mote"]
