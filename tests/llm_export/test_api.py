"""`export`: what it writes agrees with PyTorch, and what fails leaves nothing behind."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from llm_export import api
from llm_export.api import default_name, export
from llm_export.check import choose_mode
from llm_export.errors import ArgumentError, CheckError, FileError
from llm_runner import Model
from tests.contracts.architectures import save_tiny_checkpoint


@pytest.fixture
def checkpoint(tmp_path):
    torch.set_num_threads(1)
    save_tiny_checkpoint("llama", tmp_path / "llama")
    return tmp_path / "llama"


@pytest.mark.parametrize("check", ["full", "layers"])
@pytest.mark.parametrize("recipe", ["none", "8da4w"])
def test_checked_files_pass_their_golden_samples(checkpoint, tmp_path, recipe, check):
    report = export(checkpoint, tmp_path / "x.mote", recipe=recipe, check=check)
    assert report.check.mode == check and report.check.max_relative_error <= report.check.tolerance
    assert report.file_bytes == (tmp_path / "x.mote").stat().st_size
    with Model.load(report.path) as model, model.session() as session:
        model.check_segments()
        result = session.check_golden()
        kept = model.describe()["check"]
    assert result["passed"] and len(result["samples"]) == 2
    assert (kept["mode"], kept["num_positions"]) == (check, report.check.num_positions)
    assert kept["max_relative_error"] == pytest.approx(report.check.max_relative_error, rel=1e-5)


@pytest.mark.parametrize("model_type", ["mixtral", "gpt_oss"])
def test_experts_of_three_bits_pass_the_check(tmp_path, model_type):
    torch.set_num_threads(1)
    save_tiny_checkpoint(model_type, tmp_path)
    report = export(tmp_path, tmp_path / "x.mote", recipe="3w", check="full")
    with Model.load(report.path) as model:
        formats = {weight["name"]: weight["format"] for weight in model.describe()["weights"]["tensors"]}
    experts = [form for name, form in formats.items() if "experts" in name and "bias" not in name]
    assert experts and set(experts) == {"int3 group 32"}


def test_provenance(checkpoint, tmp_path):
    export(checkpoint, tmp_path / "x.mote", recipe="8w", overrides=["*.down_proj=none"], check="off")
    with Model.load(tmp_path / "x.mote") as model:
        provenance = model.describe()["provenance"]
    assert provenance["model_type"] == "llama" and provenance["model_id"] == "llama"
    assert provenance["recipe"] == "8w group_size=32 embedding=8 override *.down_proj=none"


def test_a_file_that_disagrees_is_not_written(checkpoint, tmp_path, monkeypatch):
    encode = api.encode

    def damaged(spec, read, *others):
        for block in encode(spec, read, *others):
            yield np.roll(block, 64) if "down_proj" in spec.name else block

    monkeypatch.setattr(api, "encode", damaged)
    with pytest.raises(CheckError, match="position"):
        export(checkpoint, tmp_path / "x.mote", check="full")
    assert not list(tmp_path.glob("x.mote*"))


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
def test_interrupted_exports_leave_the_old_file(checkpoint, tmp_path, monkeypatch, interruption):
    path = tmp_path / "x.mote"
    path.write_bytes(b"old")

    def stop(spec, read, *others):
        yield np.zeros(1, np.uint8)
        raise interruption

    monkeypatch.setattr(api, "encode", stop)
    with pytest.raises(interruption):
        export(checkpoint, path, check="off")
    assert [p.name for p in tmp_path.glob("x.mote*")] == ["x.mote"] and path.read_bytes() == b"old"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_unwritable_folder(checkpoint, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(FileError, match="cannot be written"):
        export(checkpoint, tmp_path / "locked" / "x.mote")


def test_layers_that_do_not_fit_a_group_are_named(tmp_path):
    save_tiny_checkpoint("llama", tmp_path / "llama")
    report = export(tmp_path / "llama", tmp_path / "x.mote", group_size=64, check="off")
    assert any("groups of 32" in note and "down_proj" in note for note in report.notes)


def test_a_checkpoint_without_a_tokenizer_is_told_unless_that_is_wanted(tmp_path):
    save_tiny_checkpoint("llama", tmp_path / "llama")
    for wanted in (True, False):
        report = export(tmp_path / "llama", tmp_path / "x.mote", recipe="none", check="off", tokenizer=wanted)
        assert any("has no tokenizer" in note and "token ids only" in note for note in report.notes) == wanted


def test_default_name(tmp_path):
    assert default_name("Qwen/Qwen3-0.6B") == "Qwen3-0.6B.mote"
    assert default_name(tmp_path) == f"{tmp_path.name}.mote"
    assert default_name(Path("gpt2")) == "gpt2.mote"


def test_unknown_check_mode():
    with pytest.raises(ArgumentError, match="must be one of full, layers, off"):
        choose_mode("some", {})
