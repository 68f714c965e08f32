"""A type that transformers gets tomorrow, built from parts that it has today, runs as it is: ten types under names that
no table, file or recogniser knows."""

from __future__ import annotations

import os

import pytest
import torch

from llm_export import api
from llm_export.capture import architectures
from llm_export.errors import UnsupportedError
from tests.contracts.architectures import Row, tiny_model
from tests.contracts.renamed import register
from tests.contracts.test_architectures import CALLS, MAX_RELATIVE_ERROR, PREFILL, relative_error, runner_logits

# Dense, windows, experts with sinks, short convolutions, latent attention, chosen keys, four kinds of recurrences.
TYPES = [
    "qwen3", "gemma3_text", "gpt_oss", "lfm3", "deepseek_v3", "deepseek_v32", "qwen3_5_text", "mamba2", "falcon_h1",
    "kimi_linear",
]  # fmt: skip
SOME = ["deepseek_v32", "falcon_h1"]


@pytest.mark.parametrize("model_type", TYPES if os.environ.get("MOTE_TEST_ALL_TYPES") else SOME)
def test_a_type_under_another_name_runs_without_a_change(model_type, tmp_path, monkeypatch):
    torch.set_num_threads(1)
    row = register(model_type, f"novel{TYPES.index(model_type)}", tmp_path, monkeypatch)
    assert architectures.find(row.model_type) is None
    model = tiny_model(row)
    assert not [module for module in model.modules() if type(module).__module__.startswith("transformers.models")]
    model.save_pretrained(tmp_path / "checkpoint")
    ids = torch.randint(3, 120, (sum(CALLS),), generator=torch.Generator().manual_seed(1)).tolist()
    with torch.no_grad():
        expected = model(torch.tensor([ids]), use_cache=False).logits[0].numpy()
    api.export(tmp_path / "checkpoint", tmp_path / "model.mote", recipe="none", check="off")
    error = relative_error(runner_logits(tmp_path / "model.mote", ids, kv_dtype="float32"), expected[PREFILL - 1 :])
    assert error <= MAX_RELATIVE_ERROR, f"{row.model_type}: relative error {error:.2e}"


@pytest.mark.parametrize(
    ("model_type", "arguments", "sentence"),
    [
        ("qwen3", {"layer_types": ["full_attention", "compressed_sparse_attention"]},
         r"Mote has no op for its layers of type 'compressed_sparse_attention' \((modeling|configuration)_qwen3\.py"),
        ("olmoe", {"hidden_act": "quick_gelu"},
         r"the activation of its experts \(OlmoeExperts at moe\.py:\d+\) is none that mote::moe_experts offers"),
        ("jetmoe", {"activation_function": "quick_gelu"},
         r"the activation of its experts \(QuickGELUActivation at activations\.py:\d+\) is none that mote::moe_exp"),
        ("doge", {"is_moe": True},
         r"its router \(modeling_doge\.py:\d+\) mixes the scores of different tokens of a call"),
    ],
)  # fmt: skip
def test_a_layer_kind_a_gate_and_a_router_that_no_op_covers_are_refused_with_their_place(
    model_type, arguments, sentence, tmp_path
):
    tiny_model(Row(model_type, arguments)).save_pretrained(tmp_path / "checkpoint")
    with pytest.raises(UnsupportedError, match=sentence):
        api.export(tmp_path / "checkpoint", tmp_path / "model.mote", recipe="none", check="off")
    assert not (tmp_path / "model.mote").exists()
