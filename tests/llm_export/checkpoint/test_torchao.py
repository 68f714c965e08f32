"""Checkpoints that transformers saved with torchao: values as torchao has them, what is kept, what is refused."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor
from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
from torchao.quantization import (
    Float8WeightOnlyConfig,
    Int4Tensor,
    Int8DynamicActivationInt8WeightConfig,
    Int8DynamicActivationIntxWeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    MappingType,
    PerAxis,
    PerGroup,
)
from transformers import AutoModelForCausalLM, TorchAoConfig

import llm_export.api
from llm_export.errors import FileError, UnsupportedError
from tests.llm_export.checkpoint.quantized_files import opened, plain_model
from tests.llm_export.program_reader import read_program

INT4 = {"weight_dtype": torch.int4, "weight_granularity": PerGroup(32)}
EXACT = {
    "int8 rows": Int8WeightOnlyConfig(),
    "int8 rows, int8 inputs": Int8DynamicActivationInt8WeightConfig(),
    "int8 groups": Int8WeightOnlyConfig(granularity=PerGroup(32)),
    "8da4w": Int8DynamicActivationIntxWeightConfig(**INT4),
    "8da4w asymmetric": Int8DynamicActivationIntxWeightConfig(**INT4, weight_mapping_type=MappingType.ASYMMETRIC),
    "8da4w rows": Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerAxis(0)),
    "2 bits": IntxWeightOnlyConfig(weight_dtype=torch.int2, granularity=PerGroup(64)),
    "3 bits asymmetric": IntxWeightOnlyConfig(torch.int3, PerGroup(128), mapping_type=MappingType.ASYMMETRIC),
}
VALUES = {
    "scales of float32": (Int8WeightOnlyConfig(granularity=PerGroup(32)), torch.float32),
    "groups of 16": (IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(16)), torch.bfloat16),
    "float8 rows": (Float8WeightOnlyConfig(), torch.bfloat16),
}


class Saved:
    """A folder as transformers saves it, and what torchao makes of its weights in their dtype."""

    def __init__(self, folder, config, dtype=torch.bfloat16):
        self.path = folder / "quantized"
        plain_model().to(dtype).save_pretrained(folder / "plain")
        how = TorchAoConfig(config)
        model = AutoModelForCausalLM.from_pretrained(folder / "plain", quantization_config=how, dtype=dtype)
        model.save_pretrained(self.path)
        self.dtype = dtype
        self.expected = {
            name: parameter.dequantize().detach()
            for name, parameter in model.named_parameters()
            if name.endswith("_proj.weight")
        }

    def edit(self, leaf: str, change) -> None:
        """Changes the first tensor whose name ends so; leaf "": what the header says of the first weight."""
        path = self.path / "model.safetensors"
        tensors = load_file(path)
        with safe_open(path, "pt") as file:
            metadata = file.metadata()
        if leaf:
            name = min(name for name in tensors if name.endswith(leaf))
            tensors[name] = change(tensors[name])
        else:
            name = min(name for name in metadata if name.endswith("_proj.weight"))
            metadata[name] = json.dumps(change(json.loads(metadata[name])))
        save_file({name: tensor for name, tensor in tensors.items() if tensor is not None}, path, metadata)


@pytest.fixture
def save(tmp_path):
    return lambda *arguments: Saved(tmp_path, *arguments)


@pytest.mark.parametrize("config", [*((each,) for each in EXACT.values()), *VALUES.values()], ids=[*EXACT, *VALUES])
def test_weights_are_what_torchao_makes_of_them_bit_for_bit(save, config):
    saved = save(*config)
    weights = opened(saved.path).weights
    assert len(saved.expected) == 14
    for name, expected in saved.expected.items():
        assert torch.equal(weights.read(name).to(saved.dtype), expected), name
        assert torch.equal(weights.read_rows(name, 3, 50).to(saved.dtype), expected[3:50]), name


def test_weights_of_a_float32_model_are_not_rounded_at_all(save):
    saved = save(EXACT["8da4w rows"], torch.float32)
    weights = opened(saved.path).weights
    for name, expected in saved.expected.items():
        assert torch.equal(weights.read(name), expected), name


@pytest.mark.parametrize("config", EXACT.values(), ids=EXACT)
def test_what_tiles_hold_is_kept_as_it_is(save, tmp_path, config):
    saved, out = save(config), tmp_path / "out.mote"
    report = llm_export.api.export(saved.path, out, recipe="stored-float", tokenizer=False, check="full")
    assert not report.notes
    assert report.check.max_relative_error < 1e-4
    kept = [spec for spec in read_program(out).planned.program.weights if spec.scales is not None]
    assert sum(len(spec.sources) for spec in kept) == 14


@pytest.mark.parametrize("config", VALUES.values(), ids=VALUES)
def test_what_tiles_do_not_hold_is_named(save, tmp_path, config):
    saved = save(*config)
    with pytest.raises(FileError, match=r"model.safetensors: (tensor|group_size).*: tiles hold .*--requantize quanti"):
        llm_export.api.export(saved.path, tmp_path / "out.mote", tokenizer=False)


def test_the_logits_are_those_of_transformers_with_the_dequantized_weights(save, tmp_path):
    saved, out = save(EXACT["8da4w"], torch.float32), tmp_path / "out.mote"
    llm_export.api.export(saved.path, out, recipe="none", tokenizer=False, check="off")
    model = plain_model()
    model.load_state_dict(saved.expected, strict=False)
    ids = list(range(1, 17))
    with torch.no_grad():
        expected = model(torch.tensor([ids])).logits[0, -1]
    found = last_logits(out, ids)
    assert (found - expected).abs().max() <= 1e-4 * expected.abs().max()


@pytest.mark.parametrize("has_zeros", [False, True])
def test_int4_tensors_are_what_the_format_says(save, tmp_path, has_zeros):
    # Their quantizer and products are there on a GPU only: value = code * scale + zero.
    saved, expected = save(EXACT["8da4w"]), {}
    generator = torch.Generator().manual_seed(2)
    state = load_file(saved.path.parent / "plain" / "model.safetensors")
    for name in saved.expected:
        rows, columns = state[name].shape
        codes = torch.randint(-8, 8, (rows, columns), generator=generator)
        scale = (0.002 + 0.004 * torch.rand(columns // 32, rows, generator=generator)).bfloat16()
        zero = (torch.randn(columns // 32, rows, generator=generator) * 0.01 * has_zeros).bfloat16()
        packed = (codes[:, ::2] & 15 | (codes[:, 1::2] & 15) << 4).to(torch.uint8).view(torch.int8)
        state[name] = Int4Tensor(packed, scale, zero, [1, 32], state[name].shape)
        spread = [part.T.float().repeat_interleave(32, 1) for part in (scale, zero)]
        expected[name] = codes * spread[0] + spread[1]
    tensors, metadata = flatten_tensor_state_dict(state)
    save_file(tensors, saved.path / "model.safetensors", metadata)
    weights = opened(saved.path).weights
    for name, values in expected.items():
        assert torch.equal(weights.read(name), values), name
        assert (weights.stored_as(name).format is None) == has_zeros
    if not has_zeros:
        out = tmp_path / "out.mote"
        report = llm_export.api.export(saved.path, out, recipe="stored-float", tokenizer=False, check="full")
        assert not report.notes and report.check.max_relative_error < 1e-4


def last_logits(path, ids: list[int]) -> Tensor:
    from llm_runner import Model

    with Model.load(path) as model, model.session(kv_dtype="float32") as session:
        return torch.tensor(session.prefill(ids))


@pytest.mark.parametrize(
    "leaf, change, message",
    [
        ("qdata", lambda t: t.short(), r"_weight_qdata' is int16 .*: must be int8 \[any, any\]"),
        ("qdata", lambda t: t + 20, r"_weight_qdata' has codes .*: must be -8 to 7"),
        ("scale", lambda t: t[:, :1].contiguous(), r"_weight_scale' is bfloat16 .*: must be .* \[128, 8\]"),
        ("scale", lambda t: None, r"_weight_scale' is missing"),
        ("zero_point", lambda t: t.int(), r"_weight_zero_point' is int32 .*: must be int8 or bfloat16"),
        ("", lambda d: d | {"_data": 3}, r"has _data = 3: must be an object"),
        ("", lambda d: d | {"_data": d["_data"] | {"block_size": [1, 48]}}, r"= \[1, 48\]: must divide \[128, 256\]"),
        ("", lambda d: d | {"_data": d["_data"] | {"block_size": 32}}, r"block_size of .* = 32: must be two sizes"),
        ("", lambda d: d | {"_data": d["_data"] | {"target_dtype": "int9"}}, r"'int9': must be int1 to int8"),
    ],
)  # fmt: skip
def test_a_tensor_that_does_not_fit_is_refused(save, leaf, change, message):
    saved = save(EXACT["8da4w"])
    saved.edit(leaf, change)
    with pytest.raises(FileError, match=message):
        opened(saved.path).weights.read("model.layers.0.mlp.down_proj.weight")


@pytest.mark.parametrize("kind", ["Int4TilePackedTo4dTensor", "MXTensor", ["Int8Tensor"]])
def test_a_kind_that_is_not_read_is_refused_by_name(save, kind):
    saved = save(EXACT["8da4w"])
    saved.edit("", lambda described: described | {"_type": kind})
    with pytest.raises(UnsupportedError, match="Kinds that are read: Int8Tensor, IntxUnpackedToInt8Tensor"):
        opened(saved.path)


def test_files_that_say_nothing_of_torchao_are_refused(save):
    saved = save(EXACT["8da4w"])
    path = saved.path / "model.safetensors"
    save_file(load_file(path), path)
    with pytest.raises(FileError, match="the headers of its safetensors files describe no tensors of torchao"):
        opened(saved.path)
