"""A module whose quantised linears torchao computes, run in eager PyTorch, agrees with the exported file."""

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from llm_export.api import export
from llm_export.capture.hadamard import hadamard, inverse_hadamard
from llm_export.quantize.affine import quantize_rows
from llm_export.quantize.recipes import CHANNEL
from llm_export.quantize.torchao_quiet import (
    Int8DynamicActivationIntxWeightConfig,
    IntxWeightOnlyConfig,
    PerAxis,
    PerGroup,
    choose_qparams_affine,
    dequantize_affine,
    mapping_symmetric,
    quantize_,
    quantize_affine,
)
from llm_runner import Model
from tests.contracts.architectures import save_tiny_checkpoint

RECIPES = {f"8da{bits}w": (bits, True) for bits in range(2, 9)} | {f"{bits}w": (bits, False) for bits in range(2, 9)}
IDS = torch.randint(3, 120, (4, 14), generator=torch.Generator().manual_seed(2))
MAX_RELATIVE_ERROR = 1e-3
# A last bit moves the int8 code of an input now and then, for all who attend to its position: docs/quantization.md.
MAX_AFTER_A_MOVED_CODE = 5e-2


def intx(bits: int) -> torch.dtype:
    return getattr(torch, f"int{bits}")


def quantize_module(
    module: nn.Module, bits: int, int8_activations: bool, group_size: int | str, rotated: bool = False
) -> None:
    """Lets torchao compute a linear or an embedding, with the codes and scales that the file has."""
    per_channel = group_size == CHANNEL
    rows = hadamard(module.weight.detach()) if rotated else module.weight.detach()
    found = quantize_rows(rows, bits, 32 if per_channel else group_size, per_channel=per_channel)
    granularity = PerAxis(0) if per_channel else PerGroup(group_size)
    if int8_activations:
        config = Int8DynamicActivationIntxWeightConfig(weight_dtype=intx(bits), weight_granularity=granularity)
    else:
        config = IntxWeightOnlyConfig(weight_dtype=intx(bits), granularity=granularity)
    quantize_(module, config, filter_fn=lambda found, name: True)
    module.weight.qdata.copy_(found.codes)
    module.weight.scale.copy_(found.scales[:, None] if per_channel else found.group_scales())


def rotated_and_rounded(x: torch.Tensor) -> torch.Tensor:
    x = hadamard(x)
    block, limits = (*[1] * (x.dim() - 1), x.shape[-1]), (torch.int8, -127, 127)
    numbers = choose_qparams_affine(x, mapping_symmetric, block, *limits, eps=0.0, scale_dtype=torch.float32)
    return dequantize_affine(quantize_affine(x, block, *numbers, *limits), block, *numbers, *limits)


def by_torchao(folder, recipe: str, group_size: int | str, embedding_bits: int, inputs: str = "rotated") -> nn.Module:
    """The Hugging Face module in float32, its linears and embeddings torchao's."""
    bits, int8_activations = RECIPES[recipe]
    is_rotated = int8_activations and inputs == "rotated"
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()

    def quantized(linear: nn.Linear, bits: int = bits) -> nn.Linear:
        quantize_module(linear, bits, int8_activations and not is_rotated, group_size, is_rotated)
        if is_rotated:
            linear.register_forward_pre_hook(lambda module, args: (rotated_and_rounded(args[0]),))
        return linear

    head = model.get_output_embeddings()
    head.weight = nn.Parameter(copy.deepcopy(head.weight.detach()), requires_grad=False)
    for module in list(model.modules()):
        if isinstance(module, nn.Embedding):  # a tied one is the head, which has rotated inputs
            rotated = is_rotated and model.config.tie_word_embeddings
            quantize_module(module, embedding_bits, False, group_size, rotated)
            if rotated:
                module.register_forward_hook(lambda module, args, rows: inverse_hadamard(rows))
        elif isinstance(module, nn.Linear):
            quantized(module, embedding_bits if module is head else bits)
        elif hasattr(module, "gate_up_proj"):
            module.forward = experts_by_torchao(module, quantized)
    return model


def experts_by_torchao(module: nn.Module, quantized: Callable[[nn.Linear], nn.Linear]) -> Callable[..., torch.Tensor]:
    """Returns the forward of a module of stacked experts, each of them two linears."""

    def linears(stack: torch.Tensor, biases: torch.Tensor | None) -> list[nn.Linear]:
        found = []
        for index, matrix in enumerate(stack.mT if module.is_transposed else stack):
            linear = nn.Linear(matrix.shape[1], matrix.shape[0], bias=biases is not None)
            linear.weight = nn.Parameter(matrix.detach().clone().contiguous(), requires_grad=False)
            if biases is not None:
                linear.bias = nn.Parameter(biases[index].detach().clone(), requires_grad=False)
            found.append(quantized(linear))
        return found

    gate_ups = linears(module.gate_up_proj, getattr(module, "gate_up_proj_bias", None))
    downs = linears(module.down_proj, getattr(module, "down_proj_bias", None))

    def forward(x: torch.Tensor, indices: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        output = torch.zeros_like(x)
        for expert, (gate_up, down) in enumerate(zip(gate_ups, downs, strict=True)):
            rows, slots = torch.where(indices == expert)
            if len(rows):
                hidden = module._apply_gate(gate_up(x[rows]))
                output.index_add_(0, rows, down(hidden) * weights[rows, slots, None])
        return output

    return forward


def assert_agrees(
    folder, path, recipe: str, group_size: int | str, embedding_bits: int, inputs: str = "rotated"
) -> None:
    model = by_torchao(folder, recipe, group_size, embedding_bits, inputs)
    expected = model(IDS, use_cache=False).logits.numpy()
    how = {"recipe": recipe, "group_size": group_size, "embedding_bits": embedding_bits, "inputs": inputs}
    export(folder, path, **how, check="off")
    options = {"context_length": IDS.shape[1], "threads": 1, "kv_dtype": "float32"}
    with Model.load(path) as model, model.session(**options) as session:
        found = []
        for ids in IDS.tolist():
            session.reset()
            found.append(session.verify(ids))
    errors = np.abs(np.stack(found) - expected).max(-1) / np.abs(expected).max()
    if RECIPES[recipe][1]:
        assert errors.min() <= 1e-5 and errors.max() <= MAX_AFTER_A_MOVED_CODE, errors
    else:
        assert errors.max() <= MAX_RELATIVE_ERROR, errors


@pytest.mark.parametrize("model_type", ["llama", "qwen3", "gemma2", "gpt_neox"])
@pytest.mark.parametrize(("recipe", "embedding_bits"), [("8da4w", 8), ("8da4w", 4), ("8da8w", 8), ("8w", 8), ("4w", 4)])
@torch.no_grad()
def test_logits_equal_torchao(model_type, recipe, embedding_bits, tmp_path):
    torch.set_num_threads(1)
    save_tiny_checkpoint(model_type, tmp_path / "checkpoint")
    assert_agrees(tmp_path / "checkpoint", tmp_path / "model.mote", recipe, 32, embedding_bits)


@pytest.mark.parametrize(("recipe", "inputs"), [("8da4w", "rotated"), ("8da8w", "token"), ("4w", "rotated")])
@pytest.mark.parametrize("model_type", ["mixtral", "gpt_oss"])  # the latter: transposed, with biases, clamped gates
@torch.no_grad()
def test_experts_equal_torchao(model_type, recipe, inputs, tmp_path):
    torch.set_num_threads(1)
    save_tiny_checkpoint(model_type, tmp_path / "checkpoint")
    assert_agrees(tmp_path / "checkpoint", tmp_path / "model.mote", recipe, 32, 8, inputs)


@pytest.mark.parametrize("recipe", ["8da4w", "8da8w"])
@torch.no_grad()
def test_inputs_that_are_not_rotated(recipe, tmp_path):
    torch.set_num_threads(1)
    save_tiny_checkpoint("llama", tmp_path / "checkpoint")
    assert_agrees(tmp_path / "checkpoint", tmp_path / "model.mote", recipe, 32, 8, "token")


@pytest.mark.parametrize(("recipe", "embedding_bits"), [(name, bits) for name, (bits, _) in RECIPES.items()])
@torch.no_grad()
def test_every_number_of_bits_equals_torchao(recipe, embedding_bits, tmp_path):
    torch.set_num_threads(1)
    save_tiny_checkpoint("llama", tmp_path / "checkpoint")
    assert_agrees(tmp_path / "checkpoint", tmp_path / "model.mote", recipe, 32, embedding_bits)


@pytest.mark.parametrize("recipe", ["8da4w", "8da8w", "4w"])
@pytest.mark.parametrize("model_type", ["llama", "qwen3"])
@torch.no_grad()
def test_one_scale_a_channel(model_type, recipe, tmp_path):
    torch.set_num_threads(1)
    save_tiny_checkpoint(model_type, tmp_path / "checkpoint")
    assert_agrees(tmp_path / "checkpoint", tmp_path / "model.mote", recipe, CHANNEL, 8)


@pytest.mark.parametrize("group_size", [64, 128, 256])
@torch.no_grad()
def test_group_sizes(group_size, tmp_path):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        "llama", hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=128, max_position_embeddings=64,
    )  # fmt: skip
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(tmp_path / "checkpoint")
    assert_agrees(tmp_path / "checkpoint", tmp_path / "model.mote", "8da4w", group_size, 8)
