"""Each weight's use is read from the graph, whatever its name or size."""

import warnings

import pytest

from llm_export.capture import capture
from llm_export.checkpoint import open_checkpoint
from llm_export.passes import fuse
from llm_export.quantize import Override, QuantizationWarning, Recipe, quantize
from llm_export.quantize.recipes import CHANNEL
from llm_export.quantize.uses import weight_uses
from tests.contracts.architectures import save_tiny_checkpoint


@pytest.fixture
def captured(request, tmp_path):
    save_tiny_checkpoint(request.param, tmp_path)
    return capture(open_checkpoint(tmp_path))


def kinds(methods):
    return {name: use.kind for use in weight_uses(methods).values() for name in use.names}


@pytest.mark.parametrize("captured", ["llama"], indirect=True)
def test_a_projection_as_wide_as_the_vocabulary_is_no_head(captured):
    found = kinds(captured)
    assert captured.weights["model.layers.0.self_attn.q_proj.weight"].shape[0] == 128  # the vocabulary has 128 too
    assert found["model.layers.0.self_attn.q_proj.weight"] == "linear"
    assert found["model.layers.0.input_layernorm.weight"] == "other"
    assert found["lm_head.weight"] in ("head", "tied")


@pytest.mark.parametrize("captured", ["gemma2"], indirect=True)
def test_tied_heads_answer_to_both_names(captured):
    found = kinds(captured)
    (name,) = [name for name in captured.weights if found.get(name) == "tied"]
    changed = quantize(captured, Recipe(), [Override("*.lm_head", "none")])
    assert changed.weights[name].bits == 0
    assert changed.weights["model.layers.0.mlp.down_proj.weight"].bits == 4


@pytest.mark.parametrize("captured", ["gpt2"], indirect=True)
def test_transposed_weights_and_position_tables(captured):
    found = kinds(captured)
    assert found["transformer.h.0.attn.c_attn.weight"] == "linear"
    assert found["transformer.wpe.weight"] == "other"


@pytest.mark.parametrize("captured", ["gpt_oss"], indirect=True)
def test_transposed_experts_are_grouped_along_their_inputs(captured):
    found = kinds(captured)
    name = "model.layers.0.mlp.experts.down_proj"
    assert found[name] == "experts"
    assert found["model.layers.0.mlp.experts.down_proj_bias"] == "other"
    inner, outer = captured.weights[name].shape[1:]
    assert inner % 64 != 0 and outer % 64 == 0  # groups of 64 would only fit along the outputs
    spec = quantize(captured, Recipe(group_size=64)).weights[name]
    assert (spec.bits, spec.group_size) == (4, 32)
    stored = fuse(quantize(captured, Recipe())).weights[f"{name}.T"]
    assert (stored.shape[1:], stored.transpose, stored.bits) == ((outer, inner), True, 4)


@pytest.mark.parametrize("captured", ["llama"], indirect=True)
def test_a_row_has_one_scale_whatever_group_its_length_allows(captured):
    overrides = [Override("*.down_proj", "8w", 32)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", QuantizationWarning)
        methods = quantize(captured, Recipe(group_size=CHANNEL), overrides)
    specs = fuse(methods).weights.values()
    assert {spec.per_channel for spec in specs if spec.bits == 4} == {True}
    assert {spec.per_channel for spec in specs if spec.name.endswith("down_proj.weight")} == {False}


@pytest.mark.parametrize("captured", ["mixtral", "gpt_oss"], indirect=True)
def test_what_the_experts_compute_on_makes_no_router(captured):
    found = kinds(captured)
    outputs = [name for name in found if name.endswith("o_proj.weight")]
    assert outputs and all(found[name] == "linear" for name in outputs)


@pytest.mark.parametrize("captured", ["mixtral"], indirect=True)
def test_routers_stay_dense_and_experts_do_not(captured):
    found = kinds(captured)
    routers = [name for name in found if ".gate." in name]
    assert routers and all(found[name] == "other" for name in routers)
    experts = [name for name in found if "experts" in name]
    assert experts and all(found[name] == "experts" for name in experts)
    changed = quantize(captured, Recipe()).weights
    assert all(changed[name].bits == 4 for name in experts)


@pytest.mark.parametrize("captured", ["longcat_flash"], indirect=True)
def test_experts_that_lie_before_others_without_a_down_projection_are_quantized_and_stored_alone(captured):
    name = "model.layers.0.mlp.experts.gate_up_proj"
    assert kinds(captured)[name] == kinds(captured)["model.layers.0.mlp.experts.down_proj"] == "experts"
    changed = quantize(captured, Recipe(group_size=32))
    (stored,) = [spec for key, spec in fuse(changed).weights.items() if key == f"{name}.first"]
    assert stored.bits == 4 and stored.takes_first
    assert stored.shape == (4, *captured.weights[name].shape[1:]) and captured.weights[name].shape[0] > 4
