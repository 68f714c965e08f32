"""EAGLE-3 heads: what is read of a checkpoint, and which are refused."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file

from llm_export.capture import build_model, capture, parameters_on_meta
from llm_export.capture.eagle_heads import build
from llm_export.checkpoint import open_checkpoint, with_assistant
from llm_export.errors import ArgumentError, FileError
from llm_export.quantize.uses import weight_uses
from tests.contracts import eagle_heads


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama-eagle3")
    eagle_heads.save_with_eagle("llama-eagle3", folder)
    return folder


@pytest.fixture
def built(folder, tmp_path):
    """built(drop=, put=, layers=, **fields) -> the head with changes, of a model as in `folder` with so many layers."""
    fields = json.loads((folder / "assistant/config.json").read_text())
    tensors = load_file(folder / "assistant/model.safetensors")
    checkpoint = open_checkpoint(folder / "model", tokenizer=False)

    def make(drop: str = "", put: dict | None = None, layers: int = 4, **changes):
        kept = {name: value for name, value in tensors.items() if name != drop}
        eagle_heads.write_head(tmp_path / "changed", fields | changes, kept | (put or {}))
        joined = with_assistant(checkpoint, tmp_path / "changed")
        checkpoint.config.num_hidden_layers = layers
        model = build_model(checkpoint.config)
        with parameters_on_meta():
            return build(model, joined, build_model)

    return make


OF_THIS = "must be an EAGLE-3 head of this model"


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (
            f"its fc.weight reads 288 numbers of a position, 3 hidden states of the model are 192: {OF_THIS}",
            {"put": {"fc.weight": torch.zeros(64, 288)}},
        ),
        (f"its vocab_size is 256, the vocab_size of the model 128: {OF_THIS}", {"vocab_size": 256}),
        (
            f"in front of layers 0, 2, 5, and the model has 4 layers: {OF_THIS}",
            {"eagle_aux_hidden_state_layer_ids": [0, 2, 5]},
        ),
        ("in front of layers 2, 5, 3, and", {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 4, 2]}}),
        ("in front of layers 2, 2, 1, and the model has 4 layers", {"eagle_config": {}}),
        ("lacks the tensor 'midlayer.mlp.up_proj.weight' of", {"drop": "midlayer.mlp.up_proj.weight"}),
        (
            "lacks the tensor 'midlayer.self_attn.k_proj.bias' of",
            {"put": {"midlayer.self_attn.q_proj.bias": torch.ones(128)}},
        ),
        (
            "'norm.weight' has shape \\[32\\], but its config asks for \\[64\\]",
            {"put": {"norm.weight": torch.zeros(32)}},
        ),
        ("tensor 'mask_hidden' has no place in an EAGLE-3 head", {"put": {"mask_hidden": torch.zeros(1, 192)}}),
        ("its draft_vocab_size is 96 and it lacks the tensor 'd2t'", {"drop": "d2t"}),
        ("'d2t' is float32 \\[96\\]: must be integers, \\[96\\]", {"put": {"d2t": torch.zeros(96)}}),
        (
            "d2t\\[5\\] = 123 means token 128: must be one of 0..127",
            {"put": {"d2t": torch.zeros(96, dtype=torch.int64).index_fill(0, torch.tensor([5, 7]), 123)}},
        ),
        ("d2t\\[0\\] = -1 means token -1", {"put": {"d2t": torch.full((96,), -1)}}),
        (
            "its tensors are those of an EAGLE head before version 3: must be gemma4_assistant or "
            "gemma4_unified_assistant, or an EAGLE-3 head",
            {"drop": "midlayer.hidden_norm.weight"},
        ),
        ("its speculators_model_type is 'peagle': must be 'eagle3'", {"speculators_model_type": "peagle"}),
        ("its use_aux_hidden_state is False: must be", {"eagle_config": {"use_aux_hidden_state": False}}),
        (
            "of type 'longrope': must be one of 'default', 'linear', 'dynamic', 'llama3', 'yarn', 'mrope'",
            {"rope_scaling": {"type": "longrope", "factor": 2.0}},
        ),
    ],
)  # fmt: skip
def test_heads_of_other_models_and_kinds_are_refused(built, text, changes):
    with pytest.raises(ArgumentError, match=text):
        built(**changes)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("draft_vocab_size = 0: must be 1..", {"draft_vocab_size": 0}),
        ("head_dim = 1000000000000: must be 1..", {"head_dim": 10**12}),
        ("hidden_size = 'wide': must be 1..", {"hidden_size": "wide"}),
        ("eagle_config = 3: must be an object", {"eagle_config": 3}),
        ("layer_ids = \\[1, -2\\]: must be a list of layers", {"eagle_aux_hidden_state_layer_ids": [1, -2]}),
        ("layer_ids = \\[1, 1, 2\\]: must be different layers", {"eagle_aux_hidden_state_layer_ids": [1, 1, 2]}),
        ("config.json: transformers refuses it", {"rms_norm_eps": [1]}),
    ],
)
def test_malformed_configs_are_refused(built, text, changes):
    with pytest.raises(FileError, match=f"changed/config.json: .*{text}" if "config.json" not in text else text):
        built(**changes)


def test_pickled_heads_are_refused_with_what_converts_them(folder, tmp_path):
    (tmp_path / "config.json").write_text((folder / "assistant/config.json").read_text())
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    checkpoint = open_checkpoint(folder / "model", tokenizer=False)
    with pytest.raises(FileError, match="pickled weights are not read.*torch.load.'pytorch_model.bin', weights_only"):
        with_assistant(checkpoint, tmp_path)


def test_forms_of_configs_choose_layers_by_inputs_or_by_outputs(built):
    assert built(eagle_config=None, layers=8).inputs == (2, 4, 5)
    two = {"fc.weight": torch.zeros(64, 128)}
    assert built(put=two, eagle_aux_hidden_state_layer_ids=[0, 4]).inputs == (0, 4)
    assert built(put=two, eagle_config={"eagle_aux_hidden_state_layer_ids": [0, 3]}).inputs == (1, 4)
    mrope = {"type": "mrope", "mrope_section": [4, 6, 6], "rope_theta": 10.0}
    head = built(rope_scaling=mrope)
    assert head.own.rotary_emb.rope_type == "default"


def test_weights_of_a_head_are_used_as_those_of_the_model_and_embeddings_kept_if_they_differ(folder, tmp_path):
    tensors = load_file(folder / "assistant/model.safetensors")
    tensors["embed_tokens.weight"] = torch.ones(128, 64)
    fields = json.loads((folder / "assistant/config.json").read_text())
    eagle_heads.write_head(tmp_path, fields, tensors)
    checkpoint = open_checkpoint(folder / "model", tokenizer=False)
    captured = capture(with_assistant(checkpoint, tmp_path))
    kinds = {name: use.kind for use in weight_uses(captured).values() for name in use.names if name.startswith("mtp.")}
    assert kinds["mtp.embed_tokens.weight"] == "embedding"
    assert kinds["mtp.lm_head.weight"] == "head"
    linear = {name for name, kind in kinds.items() if kind == "linear"}
    assert {"mtp.fc.weight", "mtp.layers.0.self_attn.q_proj.weight", "mtp.layers.0.mlp.down_proj.weight"} <= linear
    assert [state.name for state in captured.states][4:] == ["mtp.layers.0.self_attn"]
