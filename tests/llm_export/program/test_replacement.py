"""A file is replaced whole, or stays as it was and nothing lies beside it."""

import os
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


def test_an_error_of_another_file_stays_itself(tmp_path):
    with pytest.raises(FileNotFoundError, match="other"), replacing(tmp_path / "m.mote"):
        (tmp_path / "other").read_bytes()
    assert os.listdir(tmp_path) == []
