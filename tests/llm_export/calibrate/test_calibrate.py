"""Calibration over graphs: which weights, with which inputs, resumed where it stopped, and the same bytes each time."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from llm_export import calibrate as calibration
from llm_export.calibrate import calibrate, count_matrices, opened
from llm_export.calibrate.interpreter import GraphRun
from llm_export.checkpoint import open_checkpoint
from llm_export.passes import fuse
from llm_export.quantize import Recipe, quantize
from llm_export.quantize.affine import quantize_for
from llm_export.quantize.encode import encode
from tests.captures import captured
from tests.contracts.architectures import save_tiny_checkpoint

SEQUENCES = [torch.randint(128, (1, 24), generator=torch.Generator().manual_seed(i)) for i in range(3)]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    torch.set_num_threads(1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "mote" / "calibration"


def prepared(folder, model_type="llama", recipe="8da4w", **options):
    if not folder.exists():
        save_tiny_checkpoint(model_type, folder)
    checkpoint = open_checkpoint(folder)
    quantized = quantize(captured(checkpoint), Recipe(recipe, **options))
    return checkpoint, quantized, fuse(quantized)


def results_of(checkpoint, fused):
    with opened(checkpoint, fused, SEQUENCES) as results:
        calibrate(fused, checkpoint, SEQUENCES, results)
        sources = {source for spec in fused.weights.values() for source in spec.sources}
        return {source: results[source] for source in sorted(sources) if source in results}


@pytest.mark.parametrize("model_type", ["llama", "gpt2", "gemma3_text", "lfm2", "gpt_neox", "falcon"])
def test_every_linear_of_a_model_is_calibrated_but_the_head(tmp_path, model_type):
    checkpoint, quantized, fused = prepared(tmp_path / "model", model_type)
    found = results_of(checkpoint, fused)
    specs = {spec.sources[0]: spec for spec in quantized.weights.values() if spec.bits}
    assert found and set(found) <= set(specs)
    tables = ("emb", "wte", "head", "word_embeddings")
    assert all(any(table in name for table in tables) for name in set(specs) - set(found))
    for name, weight in found.items():
        stored = checkpoint.weights.read(name).float()
        assert weight.shape in (stored.shape, stored.T.shape)
        assert bool(torch.isfinite(weight.dequantize()).all())


def test_results_are_of_the_checkpoints_weights_and_files_have_them_with_their_factors(tmp_path):
    checkpoint, _, fused = prepared(tmp_path / "model", "granite", "8w")
    found = results_of(checkpoint, fused)
    factors = {}
    for spec in fused.weights.values():
        if spec.is_rounded and spec.factors:
            factors[spec.sources[0]] = spec.factors[0]
            with_results = b"".join(map(bytes, encode(spec, checkpoint.weights.read, found)))
            plain = b"".join(map(bytes, encode(spec, checkpoint.weights.read)))
            ends = [np.frombuffer(each, np.float32)[-16:] for each in (with_results, plain)]  # of the last rows
            np.testing.assert_allclose(ends[0], ends[1], rtol=0.2)
    assert factors and set(factors.values()) == {0.3}
    for name in factors:
        stored = checkpoint.weights.read(name).float()
        assert (found[name].dequantize() - stored).norm() < 0.05 * stored.norm()


def test_a_linear_is_told_the_inputs_of_the_checkpoint(tmp_path):
    checkpoint, _, fused = prepared(tmp_path / "model", recipe="8w")
    inputs = {}

    def plain(spec, rows, sums):
        inputs[spec.sources[0]] = sums()
        return quantize_for(spec, rows)

    GraphRun(fused, fused.programs["verify"], checkpoint.weights.rows, plain).run(SEQUENCES, lambda: None)
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32).eval()
    seen = {}
    for name, module in model.named_modules():
        if f"{name}.weight" in inputs:
            module.register_forward_pre_hook(
                lambda module, args, name=name: seen.setdefault(f"{name}.weight", []).append(args[0][0])
            )
    with torch.no_grad():
        for ids in SEQUENCES:
            model(ids)
    assert len(inputs) == len(seen) == 8  # of two layers: q with k and v, o, gate with up, down
    for name, parts in seen.items():
        x = torch.cat(parts)
        expected = x.T @ x
        for found in (inputs[name].cross, inputs[name].gram):
            assert float((found - expected).norm() / expected.norm()) < 0.05


def test_bytes_are_the_same_each_time(tmp_path):
    checkpoint, _, fused = prepared(tmp_path / "model")
    first, second = results_of(checkpoint, fused), results_of(checkpoint, fused)
    assert first.keys() == second.keys()
    assert all(torch.equal(a, b) for name in first for a, b in zip(first[name], second[name], strict=True))


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, cache, monkeypatch):
    checkpoint, _, fused = prepared(tmp_path / "model")
    whole = results_of(checkpoint, fused)
    assert not list(cache.iterdir())
    made = []
    gptq = calibration.gptq
    monkeypatch.setattr(calibration, "gptq", lambda *arguments: made.append(arguments[1].name) or gptq(*arguments))

    def stop(count):
        if len(made) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), opened(checkpoint, fused, SEQUENCES) as results:
        calibrate(fused, checkpoint, SEQUENCES, results, stop)
    assert len(list(cache.iterdir())) == 1
    found = results_of(checkpoint, fused)
    assert len(made) == len(set(made)) == count_matrices(fused) == 8
    assert all(torch.equal(a, b) for name in whole for a, b in zip(whole[name], found[name], strict=True))
    assert not list(cache.iterdir())


def test_damaged_results_are_made_again(tmp_path, cache):
    checkpoint, _, fused = prepared(tmp_path / "model")
    whole = results_of(checkpoint, fused)
    with pytest.raises(KeyboardInterrupt), opened(checkpoint, fused, SEQUENCES) as results:
        calibrate(fused, checkpoint, SEQUENCES, results)
        raise KeyboardInterrupt
    for path in cache.rglob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:100])
    found = results_of(checkpoint, fused)
    assert all(torch.equal(a, b) for name in whole for a, b in zip(whole[name], found[name], strict=True))


def test_other_weights_recipes_and_texts_have_results_of_their_own(tmp_path, cache):
    checkpoint, _, fused = prepared(tmp_path / "model")
    _, _, other_recipe = prepared(tmp_path / "model", recipe="8da5w")
    other_weights, _, _ = prepared(tmp_path / "other", "qwen2")
    keys = set()
    for arguments in (
        (checkpoint, fused, SEQUENCES),
        (checkpoint, fused, SEQUENCES[:2]),
        (checkpoint, other_recipe, SEQUENCES),
        (other_weights, fused, SEQUENCES),
    ):
        with opened(*arguments) as results:
            keys.add(results.folder.name)
    assert len(keys) == 4
