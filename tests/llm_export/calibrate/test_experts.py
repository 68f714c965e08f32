"""Stacked experts: each is calibrated on its own tokens, does not fit few of them too well, and is better for it."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from llm_export import api
from llm_export import calibrate as calibration
from llm_export.api import export
from llm_export.calibrate import calibrate, count_matrices, experts, opened
from llm_export.calibrate.experts import Tokens, calibrate_expert
from llm_export.calibrate.interpreter import GraphRun
from llm_export.capture.hadamard import hadamard
from llm_export.capture.ops import expert_hidden
from llm_export.checkpoint import open_checkpoint
from llm_export.passes import fuse
from llm_export.program.specs import WeightSpec
from llm_export.quantize import Override, QuantizationWarning, Recipe, quantize
from llm_export.quantize.affine import matrix_name, quantize_for
from llm_export.quantize.encode import encode
from llm_export.quantize.gptq import gptq
from tests.captures import captured
from tests.contracts.architectures import save_tiny_checkpoint
from tests.llm_export.eager import EagerProgram, materialize

MODEL_TYPES = ["mixtral", "qwen3_moe", "gpt_oss"]  # gpt_oss: transposed, with biases, gates that are clamped
NUM_EXPERTS = 4


def ids(seed, length=24, vocabulary=128):
    return torch.randint(vocabulary, (1, length), generator=torch.Generator().manual_seed(seed))


SEQUENCES = [ids(seed) for seed in range(3)]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    torch.set_num_threads(1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def prepared(folder, recipe="8da4w", overrides=()):
    checkpoint = open_checkpoint(folder)
    overrides = [Override.parse(each) for each in overrides]
    return checkpoint, fuse(quantize(captured(checkpoint), Recipe(recipe), overrides))


def stacks_of(fused):
    return [spec for spec in fused.weights.values() if len(spec.shape) == 3 and spec.is_rounded]


def calibrated(checkpoint, fused, sequences=SEQUENCES, progress=lambda count: None):
    """Returns what calibration makes of each matrix of each stack."""
    with opened(checkpoint, fused, sequences) as results:
        calibrate(fused, checkpoint, sequences, results, progress)
        names = [matrix_name(spec.sources[0], expert) for spec in stacks_of(fused) for expert in range(spec.shape[0])]
        return {name: results[name] for name in names if name in results}


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_every_matrix_of_every_stack_is_calibrated(tmp_path, recwarn, model_type):
    save_tiny_checkpoint(model_type, tmp_path)
    checkpoint, fused = prepared(tmp_path)
    steps = []
    found = calibrated(checkpoint, fused, progress=steps.append)
    assert len(stacks_of(fused)) == 4 and len(found) == 4 * NUM_EXPERTS
    assert sum(steps) == count_matrices(fused) > len(found)
    assert not [warning for warning in recwarn if warning.category is QuantizationWarning]
    for spec in stacks_of(fused):
        for expert, matrix in enumerate(materialize(spec, fused, checkpoint.weights.read)):
            weight = found[matrix_name(spec.sources[0], expert)]
            assert weight.shape == matrix.shape
            matrix = hadamard(matrix) if spec.is_rotated else matrix
            assert float((weight.dequantize() - matrix).norm() / matrix.norm()) < 0.3


@pytest.mark.parametrize("model_type", ["deepseek_v3", "deepseek_v32"])  # groups of experts; keys that are chosen
def test_routers_that_choose_among_groups(tmp_path, model_type):
    save_tiny_checkpoint(model_type, tmp_path)
    checkpoint, fused = prepared(tmp_path)
    assert len(calibrated(checkpoint, fused)) == len(stacks_of(fused)) * NUM_EXPERTS


def test_stacks_that_cannot_be_calibrated_are_named(tmp_path, monkeypatch):
    save_tiny_checkpoint("mixtral", tmp_path)
    checkpoint, fused = prepared(tmp_path)
    monkeypatch.setattr(GraphRun, "stacks", lambda run, node: {})
    with pytest.warns(QuantizationWarning, match="experts are not calibrated: .*gate_up_proj and 3 more"):
        assert not calibrated(checkpoint, fused)


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_an_expert_is_told_the_inputs_that_transformers_gives_it(tmp_path, monkeypatch, model_type):
    """Its own tokens alone, in a recipe that rounds next to nothing away."""
    monkeypatch.setattr(experts, "ENOUGH", 0)
    monkeypatch.setattr(experts, "NOISE", 0)
    save_tiny_checkpoint(model_type, tmp_path)
    checkpoint, fused = prepared(tmp_path, "none", ["*.experts.*=8w"])
    inputs = {}

    def plain(spec, rows, sums):
        inputs[spec.sources[0]] = sums()
        return quantize_for(spec, rows)

    GraphRun(fused, fused.programs["verify"], checkpoint.weights.rows, plain).run(SEQUENCES, lambda: None)
    expected = sums_of_transformers(tmp_path)
    assert len(expected) == 4 * NUM_EXPERTS and expected.keys() <= inputs.keys()
    for name, wanted in expected.items():
        for found in (inputs[name].gram, inputs[name].cross):
            assert float((found - wanted).norm() / wanted.norm()) < 0.05


@torch.no_grad()
def sums_of_transformers(folder):
    """Returns x x^T over what each matrix of each expert gets from the module of the checkpoint."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, experts_implementation="eager").eval()
    found = {}

    def add(name, x):
        found[name] = found.get(name, 0) + x.T @ x

    def hook(module, args, name):
        x, indices, _ = args
        for expert in range(NUM_EXPERTS):
            own = x[(indices == expert).any(-1)]
            add(matrix_name(f"{name}.gate_up_proj", expert), own)
            weight = module.gate_up_proj[expert]
            y = own @ (weight if module.is_transposed else weight.T)
            hidden = module._apply_gate(y + module.gate_up_proj_bias[expert] if module.has_bias else y)
            add(matrix_name(f"{name}.down_proj", expert), hidden)

    for name, module in model.named_modules():
        if name.endswith(".experts"):
            module.register_forward_pre_hook(lambda module, args, name=name: hook(module, args, name))
    for sequence in SEQUENCES:
        model(sequence)
    return found


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_products_with_the_inputs_are_nearer_than_those_of_plain_rounding(tmp_path, model_type):
    save_tiny_checkpoint(model_type, tmp_path)
    checkpoint, fused = prepared(tmp_path, "none", ["*.experts.*=3w"])
    errors = []

    def measured(spec, rows, sums):
        inputs = sums()
        made, plain = gptq(rows, spec, inputs), quantize_for(spec, rows)
        errors.append([error(weight.dequantize(), rows, inputs) for weight in (made, plain)])
        return made

    GraphRun(fused, fused.programs["verify"], checkpoint.weights.rows, measured).run(SEQUENCES, lambda: None)
    errors = torch.tensor(errors)
    assert len(errors) == 4 * NUM_EXPERTS
    assert bool((errors[:, 0] < 0.9 * errors[:, 1]).all())


def error(weight, rows, inputs):
    """Returns the squared error of products, without what no weight changes: (V - W) G (V - W)^T - 2 (V - W) A W^T."""
    off = weight - rows
    return float(((off @ inputs.gram) * off).sum() - 2 * ((off @ (inputs.cross - inputs.gram).T) * rows).sum())


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_logits_of_other_texts_are_nearer_to_the_checkpoint(tmp_path, model_type):
    save_tiny_checkpoint(model_type, tmp_path)
    checkpoint, fused = prepared(tmp_path, "none", ["*.experts.*=3w"])
    found = calibrated(checkpoint, fused, [ids(seed, 64, 16) for seed in range(12)])  # so few words are much alike
    others, divergences = [ids(seed, 64, 16) for seed in range(100, 104)], []
    exact = logits(checkpoint, fused, others, lambda spec, expert, rows: rows)
    for known in ({}, found):

        def rounded(spec, expert, rows, known=known):
            weight = known.get(matrix_name(spec.sources[0], expert))
            return (quantize_for(spec, rows) if weight is None else weight).dequantize()

        divergences.append(float((exact.exp() * (exact - logits(checkpoint, fused, others, rounded))).sum(-1).mean()))
    plain, better = divergences
    assert better < 0.5 * plain


def logits(checkpoint, fused, sequences, matrix):
    """matrix: spec of a stack, which expert, its rows -> what is to be computed with. Returns: of all tokens, [N, V]"""
    found = []
    for sequence in sequences:
        program = EagerProgram(fused, checkpoint.weights.read)
        for name, spec in fused.weights.items():
            if len(spec.shape) == 3 and spec.is_rounded:
                rows = program.values[name]
                program.values[name] = torch.stack([matrix(spec, i, rows[i]) for i in range(NUM_EXPERTS)])
        found.append(program.run("verify", sequence)[0].log_softmax(-1))
    return torch.cat(found)


def random_layer(num_tokens, seed):
    """Returns an expert and tokens, a sixteenth of them its own, that lie in a few directions and are off a little."""
    random = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=random)

    mix, wrong = normal(64, 64) * torch.arange(1, 65) ** -0.7, normal(64, 64) * 0.01
    matrices = [normal(128, 64) / 8, normal(64, 64) / 8]

    def tokens(count):
        x = normal(count, 64) @ mix.T
        indices = torch.arange(count)[:, None] % 16
        off = x + x @ wrong + normal(count, 64) * x.std() * 0.05
        return [Tokens(each, indices, torch.ones(count, 1), torch.zeros_like(x)) for each in (off, x)]

    return matrices, tokens(num_tokens * 16), tokens(16 * 256)


@pytest.mark.parametrize("num_tokens", [4, 16, 64, 256])
def test_few_tokens_are_not_fitted_too_well(num_tokens):
    plain, better = [], []
    for seed in range(3):
        matrices, lanes, others = random_layer(num_tokens, seed)
        for errors, calibrates in ((plain, False), (better, True)):
            errors.append(error_on_others(matrices, lanes, others, calibrates))
    assert sum(better) < 0.8 * sum(plain)


def error_on_others(matrices, lanes, others, calibrates):
    gate, made = {"function": "silu"}, []

    def quantized(expert, index, rows, inputs):
        spec = WeightSpec(("w",), tuple(rows.shape), torch.float32, bits=4, group_size=32)
        made.append((gptq(rows, spec, inputs()) if calibrates else quantize_for(spec, rows)).dequantize())
        return made[-1]

    calibrate_expert(0, matrices, (None, None), gate, lanes, quantized)
    found, wanted = (
        expert_hidden(tokens.x[::16], gate_up, None, **gate) @ down.T
        for tokens, (gate_up, down) in zip(others, (made, matrices), strict=True)
    )
    return float((found - wanted).square().sum() / wanted.square().sum())


@pytest.fixture
def unseen(tmp_path):
    """A checkpoint whose last expert no router chooses."""
    folder = tmp_path / "unseen"
    save_tiny_checkpoint("gpt_oss", folder)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    for name, value in tensors.items():
        if name.endswith("router.bias"):
            value[-1] = -1000.0
    save_file(tensors, path, metadata={"format": "pt"})
    return folder


def test_an_expert_without_tokens_is_rounded_plainly(unseen):
    checkpoint, fused = prepared(unseen)
    found = calibrated(checkpoint, fused)
    for spec in stacks_of(fused):
        assert [matrix_name(spec.sources[0], i) in found for i in range(NUM_EXPERTS)] == [True, True, True, False]
        plain, better = (
            np.concatenate(list(encode(spec, checkpoint.weights.rows, known))).reshape(NUM_EXPERTS, -1)
            for known in ({}, found)
        )
        assert np.array_equal(plain[-1], better[-1])
        assert not any(np.array_equal(*pair) for pair in zip(plain[:-1], better[:-1], strict=True))


def test_an_interrupted_run_goes_on_at_the_expert_where_it_stopped(tmp_path, monkeypatch):
    save_tiny_checkpoint("mixtral", tmp_path)
    checkpoint, fused = prepared(tmp_path)
    whole, made = calibrated(checkpoint, fused), []
    monkeypatch.setattr(calibration, "gptq", lambda *given: made.append(given[1].name) or gptq(*given))

    def stop(count):
        if len(made) == 5:  # two linears and three matrices of experts
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calibrated(checkpoint, fused, progress=stop)
    assert made[-1].endswith("[1]")
    found = calibrated(checkpoint, fused)
    assert len(made) == len(set(made)) == count_matrices(fused)
    assert found.keys() == whole.keys()
    assert all(torch.equal(a, b) for name in whole for a, b in zip(whole[name], found[name], strict=True))


@pytest.mark.parametrize("model_type", ["mixtral", "gpt_oss", "dbrx"])  # dbrx: gates apart from ups
def test_the_check_takes_the_codes_of_the_file(tmp_path, monkeypatch, model_type):
    save_tiny_checkpoint(model_type, tmp_path / "model")
    monkeypatch.setattr(api, "read_sequences", lambda *given: SEQUENCES)  # the checkpoint has no tokenizer
    report = export(tmp_path / "model", tmp_path / "x.mote", recipe="3w", calibration="default", check="full")
    assert report.check.max_relative_error <= report.check.tolerance
    assert not [note for note in report.notes if "not calibrated" in note]


def test_experts_of_which_one_matrix_is_rounded(tmp_path):
    save_tiny_checkpoint("mixtral", tmp_path)
    checkpoint, fused = prepared(tmp_path, overrides=["*.down_proj=none"])
    found = calibrated(checkpoint, fused)
    assert len(found) == 2 * NUM_EXPERTS and all("gate_up_proj" in name for name in found)
