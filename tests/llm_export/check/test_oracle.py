"""The oracle is Hugging Face's module, whole or a layer at a time, and torchao's where weights are quantised."""

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM

from llm_export.capture.latent_attention import absorb
from llm_export.check import oracle as oracle_module
from llm_export.check.oracle import Oracle, build_eager_model
from llm_export.checkpoint import open_checkpoint
from llm_export.quantize import Recipe, quantize
from tests.captures import captured
from tests.contracts.architectures import find, save_tiny_checkpoint
from tests.llm_export.check.test_quantized_logits import by_torchao, quantize_module

IDS = torch.randint(3, 120, (2, 9), generator=torch.Generator().manual_seed(4))


# A stored buffer (deepseek_v3), an embedding that computes its ids itself (opt), products of its own (falcon).
NAMES = ["llama", "gpt2", "mixtral", "gemma2", "deepseek_v3", "opt", "falcon", "falcon-alibi"]


@pytest.fixture(scope="module", params=NAMES)
def folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param)
    save_tiny_checkpoint(request.param, path)
    return path


@pytest.mark.parametrize("keep", [True, False])
@torch.no_grad()
def test_unquantised_equals_transformers(request, folder, keep):
    attention = find(request.node.callspec.params["folder"]).attention
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation=attention).eval()
    expected = model(IDS, use_cache=False).logits
    oracle = Oracle(open_checkpoint(folder), keep=keep)
    for _ in range(2):
        torch.testing.assert_close(oracle.logits(IDS), expected, rtol=1e-5, atol=1e-5)


def test_layers_leave_the_memory(folder):
    oracle = Oracle(open_checkpoint(folder))
    oracle.logits(IDS)
    assert all(parameter.device.type == "meta" for parameter in oracle.model.parameters())


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("recipe", ["8da4w", "8w"])
@torch.no_grad()
def test_quantised_equals_torchao(tmp_path, keep, recipe, monkeypatch):
    monkeypatch.setattr(oracle_module, "BLOCKED_ELEMENTS", 1000)  # the head is multiplied in blocks
    save_tiny_checkpoint("llama", tmp_path)
    expected = by_torchao(tmp_path, recipe, 32, 8)(IDS, use_cache=False).logits
    checkpoint = open_checkpoint(tmp_path)
    weights = quantize(captured(checkpoint), Recipe(recipe)).weights
    found = Oracle(checkpoint, weights, keep=keep).logits(IDS)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("keep", [True, False])
def test_a_product_of_the_module_itself_equals_torchao(tmp_path, keep, monkeypatch):
    def build(checkpoint):
        model = build_eager_model(checkpoint)
        for module in model.modules():
            if type(module).__name__ == "FalconLinear":
                module.__class__ = nn.Linear  # the same product by the op that torchao's tensor computes
        return model

    save_tiny_checkpoint("falcon", tmp_path)
    checkpoint = open_checkpoint(tmp_path)
    weights = quantize(captured(checkpoint), Recipe("8da4w")).weights
    found = Oracle(checkpoint, weights, keep=keep).logits(IDS)
    monkeypatch.setattr(oracle_module, "build_eager_model", build)
    expected = Oracle(checkpoint, weights, keep=keep).logits(IDS)
    # A last bit moves the code of an input now and then, for all who attend to its position.
    errors = (found - expected).abs().amax(-1) / expected.abs().max()
    assert errors.min() <= 1e-5 and errors.max() <= 5e-2


@pytest.mark.parametrize("keep", [True, False])
@torch.no_grad()
def test_transposed_experts_equal_torchao(tmp_path, keep):
    save_tiny_checkpoint("gpt_oss", tmp_path)
    model = by_torchao(tmp_path, "4w", 32, 8)
    for layer in model.model.layers:
        for stack in (layer.mlp.experts.gate_up_proj, layer.mlp.experts.down_proj):
            for matrix in stack:  # [in, out]
                linear = nn.Linear(*matrix.shape, bias=False)
                linear.weight = nn.Parameter(matrix.t().contiguous(), requires_grad=False)
                quantize_module(linear, 4, False, 32)
                matrix.copy_(linear.weight.dequantize().t())
    checkpoint = open_checkpoint(tmp_path)
    weights = quantize(captured(checkpoint), Recipe("4w")).weights
    assert weights["model.layers.0.mlp.experts.down_proj"].bits == 4
    found = Oracle(checkpoint, weights, keep=keep).logits(IDS)
    torch.testing.assert_close(found, model(IDS, use_cache=False).logits, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_matrices_of_heads_equal_torchao(tmp_path):
    save_tiny_checkpoint("minicpm3", tmp_path)
    checkpoint = open_checkpoint(tmp_path)
    weights = quantize(absorb(captured(checkpoint)), Recipe("4w")).weights
    model = by_torchao(tmp_path, "4w", 32, 8)
    for index, layer in enumerate(model.model.layers):
        name = f"model.layers.{index}.self_attn.kv_b_proj.weight"
        matrices = checkpoint.weights.read(name).float().view(4, 64, 32).clone()
        for head in matrices:  # keys are multiplied with queries, so their groups lie along the columns
            for rows in (head[:32].t(), head[32:]):
                linear = nn.Linear(rows.shape[1], rows.shape[0], bias=False)
                linear.weight = nn.Parameter(rows.contiguous(), requires_grad=False)
                quantize_module(linear, 4, False, 32)
                rows.copy_(linear.weight.dequantize())
        layer.self_attn.kv_b_proj.weight = nn.Parameter(matrices.flatten(0, 1), requires_grad=False)
        assert weights[f"{name}@4,0:32"].bits == weights[f"{name}@4,32:64"].bits == 4
    found = Oracle(checkpoint, weights).logits(IDS)
    torch.testing.assert_close(found, model(IDS, use_cache=False).logits, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_experts_that_lie_one_below_the_other_equal_torchao(tmp_path):
    save_tiny_checkpoint("dbrx", tmp_path)
    checkpoint = open_checkpoint(tmp_path)
    weights = quantize(captured(checkpoint), Recipe("4w")).weights
    model = by_torchao(tmp_path, "4w", 32, 8)
    for index, block in enumerate(model.transformer.blocks):
        router = checkpoint.weights.read(f"transformer.blocks.{index}.ffn.router.layer.weight")
        block.ffn.router.layer.weight = nn.Parameter(router.float(), requires_grad=False)  # stays dense
        mlp = block.ffn.experts.mlp
        for stored in (mlp.w1, mlp.v1, mlp.w2):
            for matrix in stored.view(4, 96, 64):
                rows = matrix.t() if stored is mlp.w2 else matrix
                linear = nn.Linear(rows.shape[1], rows.shape[0], bias=False)
                linear.weight = nn.Parameter(rows.contiguous(), requires_grad=False)
                quantize_module(linear, 4, False, 32)
                rows.copy_(linear.weight.dequantize())
    found = Oracle(checkpoint, weights).logits(IDS)
    torch.testing.assert_close(found, model(IDS, use_cache=False).logits, rtol=1e-4, atol=1e-5)


def test_perturbation_touches_only_its_rows(tmp_path):
    save_tiny_checkpoint("llama", tmp_path)
    oracle = Oracle(open_checkpoint(tmp_path))
    plain = oracle.logits(torch.cat((IDS, IDS)))
    found = oracle.logits(torch.cat((IDS, IDS)), perturbed_rows=2, perturbation=1e-3)
    torch.testing.assert_close(found[:2], plain[:2])
    difference = (found[2:] - plain[2:]).abs().max() / plain.abs().max()
    assert 1e-6 < difference < 1e-1
