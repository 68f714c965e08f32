"""Files whose asset has the only copy of the weights, run by the CPU's kernels: the same bits as a file for the CPU."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from backends.coreml.weights import CoremlWeights
from llm_export import api
from llm_export.errors import ArgumentError, MoteError
from llm_export.program import flat
from llm_export.program.header import HEADER_BYTES, MAGIC, Header
from llm_runner import Model
from mote.cli import main
from tests.backends.tensor_ops.sessions import CONTEXT, COUNTS, ids_of, installed, rows
from tests.contracts.architectures import save_tiny_checkpoint
from tests.demo import CHECKPOINT

# A plain decoder, rows that are no multiple of 16, a stack of experts, embeddings of layers, a recurrence.
TYPES = ["llama", "gpt2", "qwen2_moe", "gemma3n_text", "rwkv"]
RECIPES = [f"{bits}w" for bits in range(1, 9)]


@pytest.fixture(params=["coreai", "coreml"])
def backend(request):
    return type(installed(request.param))(CONTEXT, COUNTS)


def export(folder: Path, backend, name: str = "llama", check: str = "off", **options) -> tuple[Path, Path]:
    """A file for the CPU, and one whose asset serves the CPU too."""
    save_tiny_checkpoint(name, folder / "checkpoint")
    cpu, shared = folder / "cpu.mote", folder / "shared.mote"
    options = {"recipe": "4w", **options}
    api.export(folder / "checkpoint", cpu, check="off", **options)
    api.export(folder / "checkpoint", shared, backends=[backend, "cpu"], check=check, **options)
    return cpu, shared


def logits(path: Path, **options) -> np.ndarray:
    with Model.load(path, backend="cpu", **options) as model, model.session(context_length=CONTEXT) as session:
        return rows(session, ids_of(15))


def program_of(path: Path):
    content = path.read_bytes()
    header = Header.of(content[:HEADER_BYTES], MAGIC)
    return flat.parse(content[HEADER_BYTES : HEADER_BYTES + header.body_bytes])


def kept(path: Path) -> Path:
    return Path(f"{path}.cpu-cache")


def holder(path: Path, backend) -> Path:
    return path.with_suffix(backend.asset.suffix) / backend.asset.files[-1]


@pytest.mark.parametrize("name", TYPES)
def test_types(name, backend, tmp_path):
    cpu, shared = export(tmp_path, backend, name)
    assert np.array_equal(logits(shared), logits(cpu))
    with Model.load(shared, backend="cpu") as model:
        model.check_segments()


@pytest.mark.parametrize("recipe", RECIPES)
def test_codes_of_all_bits(recipe, backend, tmp_path):
    cpu, shared = export(tmp_path, backend, recipe=recipe, embedding_bits=max(int(recipe[0]), 2), group_size=64)
    assert np.array_equal(logits(shared), logits(cpu))


@pytest.mark.parametrize("options", [{"embedding_bits": 4}, {"recipe": "none"}, {"group_size": "channel"}], ids=str)
def test_other_forms(options, backend, tmp_path):
    cpu, shared = export(tmp_path, backend, "gpt2", **options)
    assert np.array_equal(logits(shared), logits(cpu))


def test_tables_in_pieces(backend, tmp_path, monkeypatch):
    monkeypatch.setattr(CoremlWeights, "most_rows", 15)
    cpu, shared = export(tmp_path, backend)
    assert np.array_equal(logits(shared), logits(cpu))


def test_weights_are_kept_beside_the_file(backend, tmp_path):
    cpu, shared = export(tmp_path, backend, check="full")
    assert not kept(shared).exists()
    expected = logits(shared)
    written = kept(shared).stat()
    shutil.rmtree(shared.with_suffix(backend.asset.suffix))
    assert np.array_equal(logits(shared), expected) and kept(shared).stat() == written
    kept(shared).write_bytes(cpu.read_bytes())  # no file of weights
    with pytest.raises(MoteError, match="the asset that holds the weights of"):
        logits(shared)


def test_without_a_place_for_them_they_are_in_memory(backend, tmp_path):
    cpu, shared = export(tmp_path, backend)
    assert np.array_equal(logits(shared, cache_dir=str(cpu / "none")), logits(cpu))
    assert not kept(shared).exists()


def test_an_asset_elsewhere(backend, tmp_path):
    cpu, shared = export(tmp_path, backend)
    moved = shutil.move(shared.with_suffix(backend.asset.suffix), tmp_path / "elsewhere")
    with pytest.raises(MoteError, match=f"{backend.asset.suffix}.*the asset that holds the weights of"):
        logits(shared)
    found = logits(shared, weights_file=Path(moved) / backend.asset.files[-1])
    assert np.array_equal(found, logits(cpu))


def test_a_changed_asset_is_refused(backend, tmp_path):
    _, shared = export(tmp_path, backend)
    file = holder(shared, backend)
    content = file.read_bytes()
    place = next(weight.pieces[0] for weight in program_of(shared).asset.weights if weight.pieces)
    file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    with pytest.raises(MoteError, match="is not the asset that .*shared.mote was exported with"):
        logits(shared)
    file.write_bytes(content[:-1])
    with pytest.raises(MoteError, match=f"has {len(content) - 1} bytes: .*shared.mote was exported with an asset of"):
        logits(shared)
    assert not kept(shared).exists()


def test_the_demo_model_by_the_command(backend, tmp_path, demo_files):
    """Checked on both targets; the samples replay on the CPU; the file tells little beside the asset."""
    file = tmp_path / "demo.mote"
    with pytest.raises(SystemExit) as ended:
        main(["export", str(CHECKPOINT), "-o", str(file), "--backend", f"{backend.name},cpu", "--quiet"])
    assert ended.value.code == 0
    command = [sys.executable, "-m", "mote", "verify", str(file), "--backend", "cpu", "--json"]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert report["passed"] and report["target"] == "cpu"
    cpu = demo_files.path("4w", check="off")
    assert np.array_equal(logits(file), logits(cpu))


def test_a_third_way_to_run_it_is_refused(backend, tmp_path):
    save_tiny_checkpoint("llama", tmp_path / "checkpoint")
    with pytest.raises(ArgumentError, match=f"must be {backend.name},cpu or {backend.name} alone"):
        api.export(tmp_path / "checkpoint", tmp_path / "m.mote", backends=[backend, "xnnpack", "cpu"], check="off")
