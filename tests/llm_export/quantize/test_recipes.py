"""Recipes and overrides choose formats by use and by name, and refuse what they cannot honour."""

import pytest

from llm_export.errors import ArgumentError
from llm_export.quantize.recipes import CHANNEL, Override, Recipe, check_overrides


@pytest.mark.parametrize(
    ("recipe", "use", "bits", "activations"),
    [
        ("8da4w", "linear", 4, "int8"),
        ("8da4w", "experts", 4, "int8"),
        ("8da4w", "tied", 8, "int8"),
        ("8da8w", "linear", 8, "int8"),
        ("8w", "linear", 8, "float"),
        ("8da1w", "linear", 1, "int8"),
        ("3w", "experts", 3, "float"),
        ("4w", "linear", 4, "float"),
        ("4w", "head", 8, "float"),
        ("none", "linear", 0, "float"),
        ("none", "tied", 0, "float"),
        ("8da4w", "other", 0, "float"),
    ],
)
def test_scheme_of_a_use(recipe, use, bits, activations):
    scheme = Recipe(recipe).scheme(use)
    assert (scheme.bits, scheme.activations) == (bits, activations)


def test_embedding_bits_cover_embedding_and_head():
    recipe = Recipe("8da8w", embedding_bits=5)
    assert [recipe.scheme(use).bits for use in ("embedding", "head", "tied", "linear")] == [5, 5, 5, 8]


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "8da4"},
        {"name": "8da9w"},
        {"name": "0w"},
        {"group_size": 48},
        {"group_size": "row"},
        {"embedding_bits": 1},
        {"embedding_bits": 9},
    ],
)
def test_refuses_unknown_values(arguments):
    with pytest.raises(ArgumentError, match=str(next(iter(arguments.values())))):
        Recipe(**arguments)


def test_unknown_recipe_suggests_one():
    with pytest.raises(ArgumentError, match="Did you mean '8da4w'"):
        Recipe("8da4")


@pytest.mark.parametrize("text", ["model.layers.0", "=8w", "a=9w", "a=8w:48", "a="])
def test_refuses_malformed_overrides(text):
    with pytest.raises(ArgumentError):
        Override.parse(text)


def test_override_patterns():
    assert Override.parse("*.lm_head=none").matches(["lm_head.weight"])
    assert Override.parse("model.layers.0.*=8w:64") == Override("model.layers.0.*", "8w", 64)
    assert Override.parse("model.layers.0.*=8w:channel") == Override("model.layers.0.*", "8w", CHANNEL)
    assert Override.parse("model.layers.0.*=8w").matches(["model.layers.0.mlp.up_proj.weight"])
    assert not Override.parse("model.layers.0.*=8w").matches(["model.layers.10.mlp.up_proj.weight"])
    assert Override.parse("*.up_proj=8w").matches(["model.layers.10.mlp.up_proj.weight"])


def test_override_that_matches_nothing_names_a_neighbour():
    with pytest.raises(ArgumentError, match="Did you mean 'model.layers.0.mlp.up_proj'"):
        check_overrides([Override("model.layer.0.mlp.up_proj", "8w")], [["model.layers.0.mlp.up_proj.weight"]])


def test_default_dtype_of_recipe_text():
    assert str(Recipe()) == "8da4w group_size=32 embedding=8"
    assert str(Recipe("none")) == "none"
    assert str(Recipe("8da8w", CHANNEL)) == "8da8w group_size=channel embedding=8"
