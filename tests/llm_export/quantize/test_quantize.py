"""What quantize decides for the weights of a captured model."""

import pytest

from llm_export.api import export
from llm_export.checkpoint import open_checkpoint
from llm_export.quantize import Override, Recipe, quantize
from llm_runner import Model
from tests.captures import captured
from tests.contracts.architectures import save_tiny_checkpoint

EXPERTS = [f"model.layers.0.mlp.experts.{name}_proj" for name in ("gate_up", "down")]
QUERY, HEAD, TABLE = "model.layers.0.self_attn.q_proj.weight", "lm_head.weight", "model.embed_tokens.weight"


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """model type -> the captured tiny model; llama has a head of its own, gemma2 a tied one, mixtral experts."""
    found = {}
    for name in ("llama", "gemma2", "mixtral"):
        folder = tmp_path_factory.mktemp(name)
        save_tiny_checkpoint(name, folder)
        found[name] = captured(open_checkpoint(folder))
    return found


def activations_of(quantized):
    return {name: spec.activations for spec in quantized.weights.values() for name in spec.sources}


def test_inputs_that_are_rounded_are_rotated_first(graphs):
    found = activations_of(quantize(graphs["llama"], Recipe("8da4w")))
    assert found[QUERY] == found[HEAD] == "rotated_int8"
    assert found[TABLE] == "float", "nothing multiplies an input by it"
    assert activations_of(quantize(graphs["gemma2"], Recipe("8da4w")))[TABLE] == "rotated_int8", "it is the head too"


@pytest.mark.parametrize("recipe", ["4w", "8w", "none"])
def test_inputs_that_stay_floats_are_not_rotated(graphs, recipe):
    assert set(activations_of(quantize(graphs["llama"], Recipe(recipe))).values()) == {"float"}


def test_rotation_can_be_left_out(graphs):
    for quantized in (
        quantize(graphs["llama"], Recipe("8da4w", inputs="token")),
        quantize(graphs["llama"], Recipe("8da4w"), rotated=False),
    ):
        assert activations_of(quantized)[QUERY] == "int8"
    found = activations_of(quantize(graphs["llama"], Recipe("8da4w", inputs="grouped")))
    assert (found[QUERY], found[TABLE]) == ("grouped_int8", "float")


def test_an_override_of_float_inputs_is_not_rotated(graphs):
    quantized = quantize(graphs["llama"], Recipe("8da4w"), [Override.parse("*.q_proj=4w")])
    assert activations_of(quantized)[QUERY] == "float"


def test_inputs_of_experts_are_rounded_as_those_of_linears(graphs):
    for recipe, expected in (
        (Recipe("8da4w"), "rotated_int8"), (Recipe("8da4w", inputs="grouped"), "grouped_int8"), (Recipe("4w"), "float"),
    ):  # fmt: skip
        found = activations_of(quantize(graphs["mixtral"], recipe))
        assert {found[name] for name in EXPERTS} == {expected}


@pytest.mark.parametrize("override", ["*.down_proj=4w", "*.down_proj=none"])
def test_two_matrices_of_an_expert_whose_inputs_could_not_be_rounded_alike_get_floats(graphs, override):
    found = activations_of(quantize(graphs["mixtral"], Recipe("8da4w"), [Override.parse(override)]))
    assert {found[name] for name in EXPERTS} == {"float"}
    assert found[QUERY] == "rotated_int8"


def test_multipliers_have_signs_unless_something_cannot_take_them(graphs):
    assert all(spec.signed for spec in quantize(graphs["llama"], Recipe()).weights.values())
    assert not any(spec.signed for spec in quantize(graphs["llama"], Recipe(), signed=False).weights.values())


def test_a_file_says_how_its_inputs_are_rounded(tmp_path):
    save_tiny_checkpoint("llama", tmp_path / "checkpoint")
    recipes = []
    for inputs in ("rotated", "grouped", "token"):
        export(tmp_path / "checkpoint", tmp_path / "x.mote", inputs=inputs)
        recipes.append(Model.load(tmp_path / "x.mote").describe()["provenance"]["recipe"])
    assert "inputs" not in recipes[0]
    assert recipes[1].endswith(" inputs=grouped") and recipes[2].endswith(" inputs=token")
