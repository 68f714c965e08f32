"""`--weights-file`: programs that share their weights, and what must not become of a file that others use."""

import os

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from llm_export.api import export
from llm_export.errors import ArgumentError, CheckError, FileError
from llm_runner import Model
from mote.cli import cli
from tests.contracts.architectures import save_tiny_checkpoint

IDS = [3, 5, 7, 11]


@pytest.fixture
def checkpoint(tmp_path):
    torch.set_num_threads(1)
    save_tiny_checkpoint("llama", tmp_path / "llama")
    return tmp_path / "llama"


def logits_of(path, **options):
    with Model.load(path, **options) as model, model.session() as session:
        return session.prefill(IDS)


def test_programs_share_the_weights_that_a_whole_file_has(checkpoint, tmp_path):
    whole = export(checkpoint, tmp_path / "whole.mote")
    first = export(checkpoint, tmp_path / "first.mote", weights_file=tmp_path / "shared.motew")
    shared = tmp_path / "shared.motew"
    before = (os.stat(shared).st_ino, os.stat(shared).st_mtime_ns)
    second = export(checkpoint, tmp_path / "second.mote", embed=True, weights_file=shared)
    assert (os.stat(shared).st_ino, os.stat(shared).st_mtime_ns) == before
    assert first.weights_file == shared and whole.weights_file is None
    assert first.check.max_relative_error == whole.check.max_relative_error
    assert shared.stat().st_size > whole.file_bytes - first.file_bytes > 0
    expected = logits_of(whole.path)
    for report in (first, second):
        for options in ({}, {"mmap": False}):
            assert np.array_equal(logits_of(report.path, **options), expected)
        with Model.load(report.path) as model:
            model.check_segments()
            assert model.describe()["segments"][0]["file"] == "shared.motew"
            with model.session() as session:
                assert session.check_golden()["passed"]


def test_a_file_is_found_elsewhere(checkpoint, tmp_path):
    export(checkpoint, tmp_path / "x.mote", check="off", weights_file=tmp_path / "x.motew")
    (tmp_path / "weights").mkdir()
    moved = (tmp_path / "x.motew").rename(tmp_path / "weights" / "x")
    with pytest.raises(FileError, match=r"x\.motew: .*\(the weights of .*x\.mote\)"):
        Model.load(tmp_path / "x.mote")
    with pytest.raises(ArgumentError, match=r"weights are in x\.motew: say where that is"):
        Model.load((tmp_path / "x.mote").read_bytes())
    expected = logits_of(tmp_path / "x.mote", weights_file=moved)
    assert np.array_equal(logits_of((tmp_path / "x.mote").read_bytes(), weights_file=moved), expected)


def test_weights_that_others_use_stay(checkpoint, tmp_path):
    shared = tmp_path / "x.motew"
    export(checkpoint, tmp_path / "x.mote", check="off", weights_file=shared)
    before = shared.read_bytes()
    with pytest.raises(FileError, match=r"x\.motew: holds weights of checksum \w{8}, and this export has others"):
        export(checkpoint, tmp_path / "y.mote", recipe="8da8w", check="off", weights_file=shared)
    assert shared.read_bytes() == before
    for content in (b"", b"important notes"):
        shared.write_bytes(content)
        with pytest.raises(FileError, match=r"x\.motew: is there and is no \.motew file"):
            export(checkpoint, tmp_path / "y.mote", check="off", weights_file=shared)
        assert shared.read_bytes() == content
    shared.write_bytes(before[:-1])
    with pytest.raises(FileError, match=r"x\.motew: is there and is damaged"):
        export(checkpoint, tmp_path / "y.mote", check="off", weights_file=shared)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["llama", "x.mote", "x.motew"]


def test_an_export_that_fails_leaves_no_weights(checkpoint, tmp_path, monkeypatch):
    def fails(*arguments):
        raise CheckError("no")

    monkeypatch.setattr("llm_export.api.check_targets", fails)
    with pytest.raises(CheckError):
        export(checkpoint, tmp_path / "x.mote", weights_file=tmp_path / "x.motew")
    assert [path.name for path in tmp_path.iterdir()] == ["llama"]


@pytest.mark.parametrize("name", ["x.mote", "x", "other/x.motew", "llama/x.motew"])
def test_a_name_must_be_beside_the_output(checkpoint, tmp_path, name):
    with pytest.raises(ArgumentError, match=r"must be a name that ends in \.motew, in the folder of .*x\.mote"):
        export(checkpoint, tmp_path / "x.mote", weights_file=tmp_path / name)


def test_commands(checkpoint, tmp_path):
    runner = CliRunner()
    options = ["-o", str(tmp_path / "x.mote"), "--check", "off", "--weights-file", str(tmp_path / "x.motew")]
    result = runner.invoke(cli, ["export", str(checkpoint), *options])
    assert result.exit_code == 0, result.output
    assert "beside x.motew with" in result.output
    result = runner.invoke(cli, ["push", str(tmp_path / "x.mote"), "me/x", "--dry-run"])
    assert result.exit_code != 0
    assert "its weights are in x.motew" in result.output + str(result.exception)
