"""Quantized Hugging Face checkpoints: weights bit for bit, what is kept as it is stored, and what is refused."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    GptOssConfig,
    GptOssForCausalLM,
    MixtralConfig,
    PreTrainedModel,
    Qwen3MoeConfig,
)
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

import llm_export.api
from llm_export.checkpoint import open_checkpoint
from llm_export.errors import ArgumentError, FileError, UnsupportedError
from llm_export.program.stored import dequantize
from tests.llm_export.checkpoint.quantized_files import Written, opened, plain_model
from tests.llm_export.program_reader import read_program


def compressed(format: str, **weights) -> dict:
    scheme = {"num_bits": 4, "group_size": 32, "symmetric": True, "type": "int", "strategy": "group"} | weights
    groups = {"group_0": {"targets": ["Linear"], "weights": scheme}}
    return {"quant_method": "compressed-tensors", "format": format, "config_groups": groups}


GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 64, "sym": False, "desc_act": False}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm"}
BITNET = {"quant_method": "bitnet", "quantization_mode": "offline"}
BITNET_ONLINE = {"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "online"}
EXACT = {
    "gptq": GPTQ,
    "gptq symmetric": GPTQ | {"sym": True, "group_size": 128},
    "gptq 8 bits": GPTQ | {"bits": 8},
    "gptq 2 bits": GPTQ | {"bits": 2, "group_size": 32},
    "gptq rows": GPTQ | {"group_size": -1, "sym": True},
    "awq": AWQ,
    "awq 128": AWQ | {"group_size": 128},
    "w4a16": compressed("pack-quantized"),
    "w4a16 asymmetric": compressed("pack-quantized", symmetric=False, group_size=64),
    "w8a16": compressed("pack-quantized", num_bits=8),
    "w8a8": compressed("int-quantized", num_bits=8, group_size=None, strategy="channel"),
    "nvfp4": compressed("nvfp4-pack-quantized", type="float", group_size=16),
    "mxfp4 of linears": compressed("mxfp4-pack-quantized", type="float"),
    "modelopt nvfp4": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
    "bitnet": BITNET,
    "bitnet of autobitlinear": BITNET | {"linear_class": "autobitlinear"},
    "bitnet online": BITNET_ONLINE,
    "llm.int8": {"quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False},
}
FP8 = compressed("float-quantized", num_bits=8, type="float", strategy="channel")
VALUES = {
    "gptq desc_act": GPTQ | {"desc_act": True},
    "gptq desc_act symmetric": GPTQ | {"desc_act": True, "sym": True},
    "gptq groups of 16": GPTQ | {"group_size": 16},
    "gptq scales of float32": GPTQ | {"scales": torch.float32},
    "w4a16 actorder": compressed("pack-quantized", symmetric=False) | {"desc_act": True},
    "fp8 channels": FP8,
    "fp8 tensors": compressed("float-quantized", num_bits=8, type="float", strategy="tensor"),
    "fp8 blocks of compressed-tensors": compressed(
        "float-quantized", num_bits=8, type="float", strategy="block", block_structure=[64, 96]
    ),
    "fp8 blocks": {"quant_method": "fp8", "weight_block_size": [64, 96]},
    "modelopt fp8": {"quant_method": "modelopt", "quant_algo": "FP8"},
    "nf4": {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
}


def as_bytes(fields: dict) -> Tensor:
    return torch.tensor(list(json.dumps(fields).encode()), dtype=torch.uint8)


@pytest.fixture
def write(tmp_path):
    return lambda config: Written(tmp_path, config)


@pytest.mark.parametrize("config", [*EXACT.values(), *VALUES.values()], ids=[*EXACT, *VALUES])
def test_weights_are_what_the_format_says_bit_for_bit(write, config):
    written = write(config)
    checkpoint = opened(written.folder)
    for name, expected in written.expected.items():
        assert torch.equal(checkpoint.weights.read(name), expected), name
        assert torch.equal(checkpoint.weights.read_rows(name, 3, 50), expected[3:50]), name
        assert torch.equal(checkpoint.weights.rows(name)[torch.tensor([5, 2])], expected[[5, 2]]), name


@pytest.mark.parametrize("config", EXACT.values(), ids=EXACT)
@pytest.mark.parametrize("recipe", [None, "stored-float"])
def test_what_tiles_hold_is_kept_as_it_is(write, tmp_path, config, recipe):
    written = write(config)
    out = tmp_path / "out.mote"
    report = llm_export.api.export(written.folder, out, recipe=recipe, tokenizer=False, check="full")
    assert not report.notes
    assert any(spec.scales is not None for spec in read_program(out).planned.program.weights)
    if recipe == "stored-float":
        assert report.check.max_relative_error < 1e-4


@pytest.mark.parametrize("config", VALUES.values(), ids=VALUES)
def test_what_tiles_do_not_hold_wants_a_recipe(write, tmp_path, config):
    written = write(config)
    with pytest.raises(FileError, match=r"model.safetensors: (tensor|group_size).*: tiles hold .*--requantize quanti"):
        llm_export.api.export(written.folder, tmp_path / "out.mote", tokenizer=False)
    report = llm_export.api.export(written.folder, tmp_path / "out.mote", recipe="none", tokenizer=False, check="full")
    assert report.check.max_relative_error < 1e-4
    report = llm_export.api.export(written.folder, tmp_path / "out.mote", requantize=True, tokenizer=False)
    assert report.notes == [f"{tmp_path.name} holds quantized weights, which 8da4w quantizes a second time"]


def test_experts_of_mxfp4_are_kept_as_they_are(tmp_path):
    torch.manual_seed(0)
    config = GptOssConfig(
        vocab_size=96, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, head_dim=16,
        num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=128,
        layer_types=["sliding_attention", "full_attention"], tie_word_embeddings=False,
    )  # fmt: skip
    GptOssForCausalLM(config).eval().save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    expected = {}
    generator = torch.Generator().manual_seed(1)
    for name in [name for name in tensors if name.endswith(("gate_up_proj", "down_proj"))]:
        experts, columns, rows = tensors.pop(name).shape
        blocks = torch.randint(0, 256, (experts, rows, columns // 32, 16), generator=generator).to(torch.uint8)
        scales = torch.randint(115, 124, (experts, rows, columns // 32), generator=generator).to(torch.uint8)
        blocks[0, 0, 0], scales[0, 0, 0] = 0, 3
        tensors |= {f"{name}_blocks": blocks, f"{name}_scales": scales}
        expected[name] = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
    save_file(tensors, tmp_path / "model.safetensors")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"quantization_config": {"quant_method": "mxfp4"}}))
    checkpoint = opened(tmp_path)
    for name, values in expected.items():
        assert torch.equal(checkpoint.weights.read(name), values), name
    report = llm_export.api.export(tmp_path, tmp_path / "out.mote", tokenizer=False, check="full")
    assert report.check.max_relative_error < 1e-4
    weights = read_program(tmp_path / "out.mote").planned.program.weights
    assert any(spec.scales is not None and spec.scales.codebook for spec in weights)


@pytest.mark.parametrize(
    "config, changed, message",
    [
        (GPTQ, {"bits": 3}, r"quantization_config.bits = 3: must be 2, 4, 8"),
        (GPTQ, {"group_size": 48}, r"quantization_config.group_size = 48: must divide"),
        (GPTQ, {"group_size": 0}, r"quantization_config.group_size = 0: must be -1 or what divides"),
        (GPTQ, {"checkpoint_format": "marlin"}, r"checkpoint_format = 'marlin': must be gptq or gptq_v2"),
        (AWQ, {"version": "gemv"}, r"quantization_config.version = 'gemv': must be gemm"),
        (GPTQ, {"group_size": 128}, r"scales' is float16 .*: must be float16 or bfloat16 or float32 \[2, "),
        (AWQ, {"bits": 8}, r"quantization_config.bits = 8: must be 4"),
        (VALUES["fp8 blocks"], {"weight_block_size": [0, 1]}, r"weight_block_size = \[0, 1\]: must be two sizes"),
        (VALUES["fp8 blocks"], {"weight_block_size": [32, 32]}, r"weight_scale_inv' is float32 .*: must be"),
        (VALUES["nf4"], {"load_in_4bit": False}, r"load_in_4bit = False, load_in_8bit = None: one of them must be"),
        (BITNET, {"linear_class": "linear"}, r"linear_class = 'linear': must be bitlinear or autobitlinear"),
        (BITNET, {"quantization_mode": "on"}, r"quantization_mode = 'on': must be offline or online"),
        (BITNET_ONLINE, {"modules_to_not_convert": ["(a+)+"]}, r"modules_to_not_convert = .*: must be names of mod"),
        (EXACT["w4a16"], {"config_groups": {}}, r"config_groups has no weights: must describe them"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(write, config, changed, message):
    written = write(config)
    written.config = config | changed
    written.save()
    with pytest.raises(FileError, match=message):
        open_checkpoint(written.folder)


@pytest.mark.parametrize(
    "config, message",
    [
        ({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}, "quant_algo W4A8_AWQ"),
        (BITNET | {"use_rms_norm": True}, "normalize their inputs"),
        ({"quant_method": "aqlm"}, "already quantized \\(aqlm\\)"),
        ({"quant_method": "compressed-tensors", "format": "marlin-24", "config_groups": {"g": {"weights": {}}}}, ""),
        ({}, "already quantized \\(unknown\\)"),
    ],
)
def test_a_method_that_is_not_read_is_refused_by_name(write, config, message):
    written = write(GPTQ)
    written.config = config
    written.save()
    with pytest.raises((UnsupportedError, FileError), match=message):
        open_checkpoint(written.folder)


def test_requantizing_takes_the_recipe_that_is_given_and_what_tiles_would_hold_too(write, tmp_path):
    written = write(GPTQ)
    out = tmp_path / "out.mote"
    llm_export.api.export(written.folder, out, requantize=True, recipe="8da6w", tokenizer=False, check="off")
    weights = read_program(out).planned.program.weights
    assert {spec.bits for spec in weights if spec.bits} == {6, 8}
    assert all(spec.scales is None for spec in weights)


def test_requantizing_without_what_it_needs_is_refused_or_noted(write, tmp_path):
    written = write(GPTQ)
    with pytest.raises(ArgumentError, match="requantize = True: recipe = 'stored' rounds no weight"):
        llm_export.api.export(written.folder, tmp_path / "out.mote", requantize=True, recipe="stored")
    plain_model().save_pretrained(tmp_path / "plain")
    out = tmp_path / "out.mote"
    report = llm_export.api.export(tmp_path / "plain", out, requantize=True, tokenizer=False, check="off")
    assert report.notes == ["plain holds no quantized weights: --requantize does nothing"]


@pytest.mark.parametrize(
    "config, leaf, change, message",
    [
        (GPTQ, "g_idx", lambda t: t + 9, r"g_idx' has groups 9 to 12: must be 0 to 3"),
        (GPTQ, "g_idx", lambda t: t[:-1], r"g_idx' is int32 .*: must be int32 \[256\]"),
        (GPTQ, "scales", lambda t: t.int(), r"scales' is int32 .*: must be float16 or bfloat16 or float32"),
        (GPTQ, "qzeros", lambda t: t[:, :-1].contiguous(), r"qzeros' is int32 .*: must be int32"),
        (VALUES["w4a16 actorder"], "weight_g_idx", lambda t: t * 0, r"weight_g_idx': must have each of 0 to 7 32 t"),
        (VALUES["w4a16 actorder"], "zero_point", lambda t: t[:1], r"weight_zero_point' is int32 .*: must be"),
        (FP8, "weight_scale", lambda t: t[:3], r"weight_scale' is bfloat16 \[3, 1\]: must be .* \[128, 1\]"),
        (FP8, "weight_scale", lambda t: t.int(), r"weight_scale' is int32 .*: must be bfloat16 or float16"),
        (EXACT["llm.int8"], "SCB", lambda t: t[:3], r"SCB' is float32 \[3\]: must be float32 \[128\]"),
        (EXACT["llm.int8"], "weight_format", lambda t: t + 2, r"weight_format' = \[2\]: must be \[0\], whole rows"),
        (EXACT["nvfp4"], "weight_scale", lambda t: t.float(), r"weight_scale' is float32 .*: must be float8_e4m3fn"),
        (EXACT["nvfp4"], "weight_scale", lambda t: nan(t), r"weight_scale' has scales that are no numbers: must be"),
        (EXACT["nvfp4"], "weight_packed", lambda t: t[:, :-1].contiguous(), r"254 columns: must be a multiple of 16"),
        (EXACT["nvfp4"], "weight_global_scale", lambda t: t * 0, r"weight_global_scale' = \[0.0\]: must be one number"),
        (EXACT["nvfp4"], "weight_global_scale", lambda t: t.half(), r"scale' is float16 .*: must be float32"),
        (EXACT["modelopt nvfp4"], "weight_scale_2", lambda t: t.expand(2), r"scale_2' = .*: must be one number above"),
        (EXACT["mxfp4 of linears"], "weight_scale", lambda t: t[:, 1:], r"scale' is uint8 .*: must be uint8"),
        (BITNET, "_proj.weight", lambda t: t.char(), r"weight' is int8 .*: must be uint8 \[any, any\]"),
        (BITNET, "_proj.weight", lambda t: t | 3, r"has digits of 3: must be 0 to 2"),
        (BITNET, "_proj.weight", lambda t: t[:-1], r"has shape \[124, 256\], but config.json asks for \[128, 256\]"),
        (BITNET, "weight_scale", lambda t: t * 0, r"weight_scale' = \[0.0\]: must be one number other than 0"),
        (VALUES["nf4"], "absmax", lambda t: t[:3], r"absmax' is uint8 \[3\]: must be"),
        (VALUES["nf4"], "nested_absmax", lambda t: t[:0], r"nested_absmax' is float32 \[0\]: must be float32"),
        (VALUES["nf4"], "weight.quant_map", lambda t: t[:15], r"quant_map' is float32 \[15\]: must be float32 \[16\]"),
        (VALUES["nf4"], "proj.weight", lambda t: t[:15], r"has 15 bytes: must have 16384 for 4 bits of 128 x 256"),
        (VALUES["nf4"], "__nf4", lambda t: t[:15], r"__\*': must be there, and JSON"),
        (VALUES["nf4"], "__nf4", lambda t: as_bytes({"shape": [128, 128], "blocksize": 0}), r"blocksize = 0: must be"),
        (VALUES["nf4"], "__nf4", lambda t: as_bytes({"shape": [-1], "blocksize": 64}), r"shape = \[-1\]: must be two"),
    ],
)  # fmt: skip
def test_a_tensor_that_does_not_fit_is_refused(write, config, leaf, change, message):
    written = write(config)
    name = min(name for name in written.tensors if name.endswith(leaf) and "_proj" in name)
    written.tensors[name] = change(written.tensors[name]).contiguous()
    written.save()
    with pytest.raises(FileError, match=message):
        opened(written.folder).weights.read("model.layers.0.mlp.down_proj.weight")


@pytest.mark.parametrize("name", ["nvfp4", "modelopt nvfp4", "bitnet", "llm.int8", "w8a8"])
def test_columns_that_fill_no_tile_have_their_values_and_are_named(tmp_path, name):
    written = Written(tmp_path, EXACT[name], plain_model(240))
    weights = opened(tmp_path).weights
    for weight, expected in written.expected.items():
        assert torch.equal(weights.read(weight), expected), weight
        stored = weights.stored_as(weight)
        assert ("tiles hold multiples of 32" in stored.why) == ("down_proj" in weight) == (stored.format is None)


def sparse_model(kind: str) -> PreTrainedModel:
    """Of a type whose checkpoints have a tensor for each matrix of an expert."""
    torch.manual_seed(0)
    sizes = {
        "vocab_size": 96, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 32,
        "num_key_value_heads": 2, "num_experts_per_tok": 2, "max_position_embeddings": 128,
        "tie_word_embeddings": False,
    }  # fmt: skip
    config = (
        MixtralConfig(**sizes, num_local_experts=4, intermediate_size=64)
        if kind == "mixtral"
        else Qwen3MoeConfig(**sizes, num_experts=4, moe_intermediate_size=64)
    )
    return AutoModelForCausalLM.from_config(config).eval()


@pytest.mark.parametrize("kind", ["mixtral", "qwen3_moe"])
@pytest.mark.parametrize("name", ["gptq", "awq", "w4a16 asymmetric", "w8a8", "nvfp4", "mxfp4 of linears"])
def test_experts_that_are_stored_one_by_one_are_kept_as_they_are(tmp_path, kind, name):
    written = Written(tmp_path, EXACT[name], sparse_model(kind))
    weights = opened(tmp_path).weights
    experts = "block_sparse_moe.experts" if kind == "mixtral" else "mlp.experts"
    gate, up, down = ("w1", "w3", "w2") if kind == "mixtral" else ("gate_proj", "up_proj", "down_proj")
    for layer in range(2):
        wanted = {
            each: torch.stack([
                written.expected[f"model.layers.{layer}.{experts}.{expert}.{each}.weight"] for expert in range(4)
            ]) for each in (gate, up, down)
        }  # fmt: skip
        module = f"model.layers.{layer}.mlp.experts"
        merged = {"gate_up_proj": torch.cat([wanted[gate], wanted[up]], 1), "down_proj": wanted[down]}
        for leaf, values in merged.items():
            assert torch.equal(weights.read(f"{module}.{leaf}"), values)
            found = weights.stored_as(f"{module}.{leaf}")
            kept = weights.stored_rows(f"{module}.{leaf}", 3, 300)
            assert torch.equal(dequantize(kept, found.format), values.flatten(0, 1)[3:300])
    report = llm_export.api.export(tmp_path, tmp_path / "out.mote", recipe="stored-float", tokenizer=False)
    assert not report.notes
    assert report.check.max_relative_error < 1e-4


def test_experts_that_are_stored_in_different_ways_are_quantized_a_second_time_and_named(tmp_path):
    written = Written(tmp_path, GPTQ | {"group_size": 32}, sparse_model("qwen3_moe"))
    prefix = "model.layers.1.mlp.experts.2.up_proj"
    for part in ("qweight", "qzeros", "scales", "g_idx"):
        del written.tensors[f"{prefix}.{part}"]
    written.tensors[f"{prefix}.weight"] = written.expected[f"{prefix}.weight"].contiguous()
    written.save()
    name = "model.layers.1.mlp.experts.gate_up_proj"
    stored = opened(tmp_path).weights.stored_as(name)
    assert stored.format is None and f"{prefix}.weight'" in stored.why and "in different ways" in stored.why
    (note,) = llm_export.api.export(tmp_path, tmp_path / "out.mote", tokenizer=False, check="off").notes
    assert "stored as GPTQ, which no tiles hold as it is" in note and note.endswith(f"to 7 bits: {name}")


def test_online_bitnet_leaves_what_the_config_names_and_the_head_dense(write):
    written = write(BITNET_ONLINE | {"modules_to_not_convert": ["down_proj", "lm_head", "model.layers.1"]})
    weights = opened(written.folder).weights
    kept = {name for name in weights.names() if weights.stored_as(name)}
    names = ["mlp.gate_proj", "mlp.up_proj", *(f"self_attn.{each}_proj" for each in "qkvo")]
    assert kept == {f"model.layers.0.{name}.weight" for name in names}


def nan(scales: Tensor) -> Tensor:
    return scales.view(torch.uint8).fill_(0x7F).view(scales.dtype)


@pytest.mark.parametrize("config", [EXACT["nvfp4"], EXACT["modelopt nvfp4"]], ids=["compressed-tensors", "modelopt"])
def test_a_scale_of_all_that_is_no_power_of_two_is_rounded_once(write, config):
    written = write(config | {"of_all": 1234.567 if config == EXACT["nvfp4"] else 1 / 1234.567})
    weights = opened(written.folder).weights
    for name, expected in written.expected.items():
        assert torch.allclose(weights.read(name), expected, rtol=2.0**-22, atol=0), name


def test_exponents_too_far_apart_for_one_row_are_not_kept(write, tmp_path):
    written = write(EXACT["mxfp4 of linears"])
    name = min(name for name in written.tensors if name.endswith("_proj.weight_scale"))
    written.tensors[name][0, :2] = torch.tensor([80, 121], dtype=torch.uint8)
    written.tensors[name.replace("scale", "packed")][0] = 0x22  # ones
    written.save()
    prefix = name.removesuffix("_scale")
    assert opened(written.folder).weights.read(prefix)[0, [0, 32]].tolist() == [2.0**-47, 2.0**-6]
    with pytest.raises(FileError, match="weight_scale' has exponents of a row far apart: tiles hold 39 powers of two"):
        llm_export.api.export(written.folder, tmp_path / "out.mote", tokenizer=False)


def test_a_zero_point_that_no_byte_holds_is_not_kept(write, tmp_path):
    written = write(EXACT["gptq 8 bits"] | {"checkpoint_format": "gptq_v2"})
    name = min(name for name in written.tensors if name.endswith("qzeros"))
    written.tensors[name][:] = 0
    written.save()
    with pytest.raises(FileError, match="qzeros' has zero points of 0: tiles of 8 bits hold 1 to 256"):
        llm_export.api.export(written.folder, tmp_path / "out.mote", tokenizer=False)
    prefix = name.removesuffix("qzeros")
    each = opened(written.folder).weights.read(f"{prefix}weight")
    digits = written.tensors[f"{prefix}qweight"].T.contiguous().view(torch.uint8)
    scales = written.tensors[f"{prefix}scales"].float().repeat_interleave(64, 0).T
    assert torch.equal(each, digits.float() * scales)


@pytest.mark.parametrize("part", ["qweight", "qzeros", "scales"])
def test_a_tensor_that_is_missing_is_named(write, part):
    written = write(GPTQ)
    name = next(name for name in written.tensors if name.endswith(part))
    del written.tensors[name]
    written.save()
    with pytest.raises(FileError, match=name.rpartition(".")[0].replace(".", "\\.")):
        opened(written.folder)
