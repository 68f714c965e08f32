"""Opening checkpoints: what is read, and what is refused with a sentence that names file, field and value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from llm_export.capture import build_model, capture
from llm_export.checkpoint import open_checkpoint
from llm_export.errors import FileError, UnsupportedError
from tests.contracts.architectures import find, save_tiny_checkpoint, tiny_model


@pytest.fixture
def folder(tmp_path) -> Path:
    torch.set_num_threads(1)
    save_tiny_checkpoint("llama", tmp_path)
    return tmp_path


def edit_json(path: Path, **fields) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def edit_tensors(folder: Path, edit) -> None:
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def shard(folder: Path, weight_map: dict) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def bound(folder: Path):
    checkpoint = open_checkpoint(folder)
    checkpoint.weights.bind(build_model(checkpoint.config))
    return checkpoint


def test_reads_config_template_license_and_tensors(folder):
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    (folder / "LICENSE").write_text("free")
    checkpoint = bound(folder)
    assert checkpoint.config.model_type == "llama"
    assert (checkpoint.chat_template, checkpoint.license, checkpoint.revision) == ("{{ messages }}", "free", "")
    expected = tiny_model(find("llama")).state_dict()["model.layers.1.mlp.up_proj.weight"]
    assert torch.equal(checkpoint.weights.read("model.layers.1.mlp.up_proj.weight"), expected)
    assert torch.equal(checkpoint.weights.read_rows("model.layers.1.mlp.up_proj.weight", 3, 5), expected[3:5])


def test_chat_template_from_tokenizer_config(folder):
    named = [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": named}))
    assert open_checkpoint(folder).chat_template == "D"


def test_merged_experts_are_read_from_a_checkpoint_with_one_tensor_an_expert(tmp_path):
    save_tiny_checkpoint("mixtral", tmp_path)
    stored = load_file(tmp_path / "model.safetensors")
    checkpoint = bound(tmp_path)
    assert "model.layers.0.mlp.experts.gate_up_proj" not in stored
    expected = tiny_model(find("mixtral")).state_dict()["model.layers.0.mlp.experts.gate_up_proj"]
    assert torch.equal(checkpoint.weights.read("model.layers.0.mlp.experts.gate_up_proj"), expected)


def test_tied_head_shares_one_weight_spec(tmp_path):
    save_tiny_checkpoint("llama-llama3-tied", tmp_path)
    methods = capture(open_checkpoint(tmp_path))
    specs = [spec for name, spec in methods.weights.items() if "embed_tokens" in name or "lm_head" in name]
    assert specs and all(spec is specs[0] for spec in specs)


def test_tied_parameters_that_differ_in_the_file_are_not_tied(tmp_path):
    save_tiny_checkpoint("llama-llama3-tied", tmp_path)
    head = torch.randn(128, 64)
    edit_tensors(tmp_path, lambda tensors: tensors.update({"lm_head.weight": head}))
    checkpoint = bound(tmp_path)
    assert torch.equal(checkpoint.weights.read("lm_head.weight"), head)
    assert not torch.equal(checkpoint.weights.read("model.embed_tokens.weight"), head)


def test_head_alone_serves_a_tied_embedding(tmp_path):
    save_tiny_checkpoint("llama-llama3-tied", tmp_path)
    edit_tensors(tmp_path, lambda tensors: tensors.update({"lm_head.weight": tensors.pop("model.embed_tokens.weight")}))
    checkpoint = bound(tmp_path)
    stored = load_file(tmp_path / "model.safetensors")["lm_head.weight"]
    assert torch.equal(checkpoint.weights.read("model.embed_tokens.weight"), stored)


def test_text_part_of_a_multimodal_wrapper(tmp_path):
    save_tiny_checkpoint("llama", tmp_path)
    text = json.loads((tmp_path / "config.json").read_text())
    edit_tensors(tmp_path, _prefix_language_model)
    wrapper = {"model_type": "llava", "text_config": text, "vision_config": {"model_type": "clip_vision_model"}}
    (tmp_path / "config.json").write_text(json.dumps(wrapper))
    checkpoint = bound(tmp_path)
    assert checkpoint.config.model_type == "llama"
    assert "model.layers.0.mlp.up_proj.weight" in checkpoint.weights


def _prefix_language_model(tensors: dict) -> None:
    for name in list(tensors):
        tensors[f"language_model.{name}"] = tensors.pop(name)


def test_refuses_a_missing_folder(tmp_path):
    with pytest.raises(FileError, match="no such folder"):
        open_checkpoint(tmp_path / "absent")


def test_refuses_a_folder_without_config(folder):
    (folder / "config.json").unlink()
    with pytest.raises(FileError, match=r"no config\.json"):
        open_checkpoint(folder)


@pytest.mark.parametrize("text", ["{", "[]", '"x"', "{}", '{"model_type": 3}'])
def test_refuses_a_malformed_config(folder, text):
    (folder / "config.json").write_text(text)
    with pytest.raises(FileError, match=r"config\.json"):
        open_checkpoint(folder)


def test_refuses_pickled_weights_and_says_how_to_convert(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(FileError, match="save_pretrained"):
        open_checkpoint(folder)


def test_refuses_a_folder_without_weights(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileError, match="neither"):
        open_checkpoint(folder)


@pytest.mark.parametrize("size", [0, 4, 100, -1])
def test_refuses_truncated_weights(folder, size):
    path = folder / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[:size])
    with pytest.raises(FileError, match=r"model\.safetensors"):
        open_checkpoint(folder)


def test_refuses_a_header_of_garbage(folder):
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[8:40] = b"\xff" * 32
    path.write_bytes(data)
    with pytest.raises(FileError, match="not a whole safetensors file"):
        open_checkpoint(folder)


@pytest.mark.parametrize("name", ["../model.safetensors", "/etc/passwd", "a/b.safetensors", ".hidden", 7])
def test_refuses_shards_outside_the_folder(folder, name):
    shard(folder, {"lm_head.weight": name})
    with pytest.raises(FileError, match="weight_map names"):
        open_checkpoint(folder)


def test_refuses_a_missing_shard(folder):
    shard(folder, {"lm_head.weight": "model-00001-of-00002.safetensors"})
    with pytest.raises(FileError, match="model-00001-of-00002"):
        open_checkpoint(folder)


def test_refuses_a_shard_without_its_tensor(folder):
    shard(folder, {"absent.weight": "model.safetensors"})
    with pytest.raises(FileError, match=r"lacks tensor 'absent\.weight'"):
        open_checkpoint(folder)


def test_refuses_an_index_without_weight_map(folder):
    (folder / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(FileError, match="weight_map"):
        open_checkpoint(folder)


def test_refuses_shapes_that_disagree_with_the_config(folder):
    edit_json(folder / "config.json", intermediate_size=64)
    with pytest.raises(FileError, match=r"mlp.*shape \[96, 64\].*asks for \[64, 64\]"):
        bound(folder)


def test_refuses_missing_tensors(folder):
    edit_tensors(folder, lambda tensors: tensors.pop("model.layers.0.mlp.up_proj.weight"))
    with pytest.raises(FileError, match=r"lacks tensors.*model\.layers\.0\.mlp\.up_proj\.weight"):
        bound(folder)


def test_refuses_an_unknown_dtype(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes().replace(b'"F32"', b'"C64"', 1))
    with pytest.raises(FileError):
        open_checkpoint(folder)


@pytest.mark.parametrize(
    ("model_type", "reason"),
    [
        ("bert", "is an encoder"),
        ("bart", "encoder-decoder"),
        ("t5", "no causal"),
        ("xlnet", "both directions"),
        ("zz", "no causal"),
    ],
)
def test_refuses_types_that_are_no_decoder_and_says_why(folder, model_type, reason):
    edit_json(folder / "config.json", model_type=model_type)
    with pytest.raises(UnsupportedError, match=reason):
        open_checkpoint(folder)


def test_refuses_quantized_checkpoints(folder):
    edit_json(folder / "config.json", quantization_config={"quant_method": "vptq"})
    with pytest.raises(UnsupportedError, match="already quantized \\(vptq\\)"):
        open_checkpoint(folder)


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("model.safetensors", b"\x10\0\0\0\0\0\0\0{}", "one safetensors file: give the folder that it is in"),
        ("model.mote", b"MOTE\r\n\x1a\n", "a .mote file already"),
        ("pytorch_model.bin", b"PK\x03\x04", "a zip archive, or pickled weights"),
        ("notes.txt", b"hello", "a file; must be a Hugging Face checkpoint"),
    ],
)
def test_says_what_a_file_is_that_is_no_checkpoint(tmp_path, name, content, kind):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError) as caught:
        open_checkpoint(tmp_path / name)
    assert str(caught.value).startswith(f"{tmp_path / name}: is {kind}")
    assert "a folder with config.json and model.safetensors" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("adapter_config.json", '{"base_model_name_or_path": "a/b"}', "is a LoRA adapter of a/b, .*mote adapter"),
        ("adapter_config.json", "[]", "is a LoRA adapter, which"),
        ("model_index.json", "{}", "a pipeline of diffusers"),
        ("notes.txt", "x", "has no config.json: must be a Hugging Face checkpoint folder"),
    ],
)
def test_says_what_a_folder_is_that_is_no_checkpoint(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(FileError, match=message):
        open_checkpoint(tmp_path)
