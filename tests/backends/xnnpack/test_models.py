"""Quantised models of every type: what XNNPACK runs gives the logits that the CPU's kernels give."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import numpy as np
import pytest

from backends.xnnpack.lowering import XnnpackBackend
from llm_export import api
from llm_runner import BackendError, Model, ProgramError
from tests.backends.models import (
    DECODE,
    MAX_AFTER_A_MOVED_CODE,
    MAX_RELATIVE_ERROR,
    PREFILL,
    SOME,
    VERIFY,
    chosen,
    each_type,
    errors_of,
    logits,
)
from tests.backends.parts import half_tolerance
from tests.contracts.architectures import Row, save_tiny_checkpoint


# Inputs stay floats here: rounded to 8 bits, a difference in the last bit of one moves a code now and then.
@each_type(SOME)
def test_the_same_logits_as_on_the_cpu(row: Row, tmp_path, xnnpack):
    assert errors_of("xnnpack", row.name, tmp_path, "4w").max() <= MAX_RELATIVE_ERROR


@pytest.mark.parametrize("recipe", ["8da4w", "8da8w", "none"])
@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma2", "gpt2"])
def test_recipes(name, recipe, tmp_path, xnnpack):
    errors = errors_of("xnnpack", name, tmp_path, recipe)
    assert errors.min() <= 1e-5 and errors.max() <= (1e-5 if recipe == "none" else MAX_AFTER_A_MOVED_CODE), errors


@pytest.mark.parametrize("recipe", ["8da4w", "8da8w", "4w", "8w"])
def test_one_scale_a_channel(recipe, tmp_path, xnnpack):
    assert errors_of("xnnpack", "llama", tmp_path, recipe, "channel").min() <= 1e-5


@pytest.fixture(scope="module")
def both(checked_report, tmp_path_factory, xnnpack):
    assert not checked_report.notes
    return Path(shutil.copy(checked_report.path, tmp_path_factory.mktemp("both")))  # what is packed lies beside it


@pytest.mark.parametrize("has_cache_dir", [False, True])
def test_an_export_leaves_nothing_of_what_was_packed_for_its_check(has_cache_dir, tmp_path, xnnpack, monkeypatch):
    save_tiny_checkpoint("llama", tmp_path / "llama")
    (tmp_path / "caches").mkdir()
    (tmp_path / "out").mkdir()
    monkeypatch.delenv("MOTE_CACHE_DIR", raising=False)
    if has_cache_dir:
        monkeypatch.setenv("MOTE_CACHE_DIR", str(tmp_path / "caches"))
    report = api.export(tmp_path / "llama", tmp_path / "out" / "m.mote", backends="xnnpack,cpu", check="full")
    assert not report.notes or not any("not checked on xnnpack" in note for note in report.notes)
    assert os.listdir(tmp_path / "out") == ["m.mote"]
    assert os.listdir(tmp_path / "caches") == []


def test_sessions_go_back_branch_and_are_saved_as_on_the_cpu(both, tmp_path):
    texts = []
    for backend in ("cpu", "xnnpack"):
        model = Model.load(both, backend=backend)
        session = model.session(context_length=256)
        session.append("def read_lines(path):\n")
        start = session.position
        first = session.generate(max_new_tokens=24, do_sample=False).text()
        session.rewind(start)
        again = session.generate(max_new_tokens=24, do_sample=False).text()
        fork = session.fork()
        session.save(tmp_path / backend)
        ahead = session.generate(max_new_tokens=16, do_sample=False).text()
        assert again == first
        assert fork.generate(max_new_tokens=16, do_sample=False).text() == ahead
        restored = model.session(context_length=256)
        restored.restore(tmp_path / backend)
        assert restored.generate(max_new_tokens=16, do_sample=False).text() == ahead
        texts.append(first + ahead)
    assert texts[0] == texts[1]


def test_sequences_decode_together_on_the_cpu_only(both):
    with pytest.raises(ProgramError, match=r"mote\.delegate.* is run by a backend.*load the model for the backend cpu"):
        Model.load(both, backend="xnnpack").batch(2)
    Model.load(both, backend="cpu").batch(2).close()


def test_the_file_grows_by_its_blobs_only(both, demo_files):
    about = Model.load(both).describe()
    blobs = sum(delegate["bytes"] for delegate in about["delegates"])
    more = both.stat().st_size - demo_files.path().stat().st_size
    assert more < 1.2 * blobs + 2 * 64 * 1024  # segments begin at multiples of 64 KiB
    assert {method["target"] for method in about["methods"]} == {"xnnpack", "cpu"}


def test_dense_weights_in_float16(demo_checkpoint, tmp_path, xnnpack):
    path, ids = tmp_path / "demo.mote", list(range(30, 30 + PREFILL + DECODE + VERIFY))
    sizes = {}
    for half in (False, True):
        api.export(demo_checkpoint, path, backends=[XnnpackBackend(half=half), "cpu"], recipe="none", check="off")
        expected = logits(Model.load(path, backend="cpu"), ids)
        actual = logits(Model.load(path, backend="xnnpack"), ids)
        bound = half_tolerance(256) if half else 1e-5  # of its hidden_size
        assert np.abs(actual - expected).max() <= bound * np.abs(expected).max()
        sizes[half] = Path(f"{path}.xnnpack-cache").stat().st_size
        Path(f"{path}.xnnpack-cache").unlink()
    assert sizes[True] < 0.6 * sizes[False]


def test_a_tied_head_stays_with_the_embedding(demo_files):
    report = demo_files.report(backends="xnnpack", check="off")
    tied = [r for r in report.refusals if r.reason.startswith("the embedding's weight")]
    assert {(r.op, r.method) for r in tied} == {("mote.linear", m) for m in ("prefill", "decode", "verify")}
    assert len(tied) == 3


def test_a_library_that_is_missing_is_named_and_another_way_is_taken(both):
    missing = {"MOTE_XNNPACK_LIBRARY": "/nowhere/libXNNPACK.so"}
    assert chosen(both, "auto", **missing).stdout == "cpu\n"
    refused = chosen(both, "xnnpack", **missing)
    assert "/nowhere/libXNNPACK.so" in refused.stderr and BackendError.__name__ in refused.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="64-bit Arm always has vectors that kernels are written for")
@pytest.mark.parametrize(("features", "target"), [("none", "xnnpack"), ("avx2", "cpu")])
def test_auto_takes_what_is_faster_on_the_device(both, xnnpack, features, target):
    library = os.environ["MOTE_XNNPACK_LIBRARY"]
    run = chosen(both, "auto", MOTE_XNNPACK_LIBRARY=library, MOTE_CPU_FEATURES=features)
    assert run.stdout == target + "\n", run.stderr


CPU_INFO = Path("/proc/cpuinfo")


IS_AMD = CPU_INFO.exists() and "AuthenticAMD" in CPU_INFO.read_text()


@pytest.mark.skipif(not IS_AMD, reason="measured on AMD's CPUs")
@pytest.mark.parametrize(
    ("recipe", "overrides", "target"),
    [
        ("8da8w", (), "xnnpack"),
        ("8w", (), "xnnpack"),
        ("4w", (), "xnnpack"),
        ("8da4w", (), "cpu"),
        ("8da8w", ("*.down_proj=8da8w:32",), "cpu"),
    ],
)
def test_auto_takes_what_is_faster_for_the_weights(recipe, overrides, target, demo_checkpoint, tmp_path, xnnpack):
    path = tmp_path / "demo.mote"
    api.export(
        demo_checkpoint, path, backends="xnnpack,cpu", recipe=recipe, group_size="channel", overrides=overrides,
        check="off",
    )  # fmt: skip
    run = chosen(path, "auto", MOTE_XNNPACK_LIBRARY=os.environ["MOTE_XNNPACK_LIBRARY"])
    assert run.stdout == target + "\n", run.stderr
