"""Options by name: what Python hands to the library, and what the library says of it."""

from __future__ import annotations

import decimal
import json
import runpy
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch

from llm_runner import (
    ArgumentError,
    BeamSearchOptions,
    GenerationOptions,
    Grammar,
    LoadingOptions,
    Model,
    SessionOptions,
    check_options,
    describe_options,
    option_types,
    warp,
)

PROMPT = "import os\n\n\ndef main(path):\n    return "
OPTIONS = {option["name"]: option for option in describe_options()}
BY_SCOPE = {
    scope: [name for name, option in OPTIONS.items() if option["scope"] == scope]
    for scope in ("generation", "beam_search", "session", "model")
}


def test_the_table_has_what_its_description_says():
    assert set().union(*BY_SCOPE.values()) == set(OPTIONS)
    for option in OPTIONS.values():
        assert set(option) == {
            "name", "other_names", "scope", "type", "choices", "minimum", "maximum", "default", "unit", "asks_for_sampling",
            "accepted", "help",
        }  # fmt: skip
    assert OPTIONS["top_p"]["accepted"] == "a number, 0..1 (1: off)"
    assert OPTIONS["seed"]["default"] is None


def test_keywords_are_those_of_the_table():
    path = Path(__file__).parents[2] / "runner" / "python" / "make_option_types.py"
    make = runpy.run_path(str(path))["option_types"]
    assert Path(option_types.__file__).read_text() == make(list(OPTIONS.values())), "build mote_option_types"
    assert list(GenerationOptions.__annotations__) == BY_SCOPE["generation"]
    assert list(option_types.SessionOptions.__annotations__) == BY_SCOPE["session"]
    assert list(LoadingOptions.__annotations__) == BY_SCOPE["model"]
    assert set(BeamSearchOptions.__annotations__) == {*BY_SCOPE["generation"], *BY_SCOPE["beam_search"]}
    assert set(SessionOptions.__annotations__) == {*BY_SCOPE["session"], "prefix_cache", "draft_model"}


@pytest.mark.parametrize("name", [name for name, option in OPTIONS.items() if option["default"] is not None])
def test_a_default_is_accepted_and_none_is_as_if_not_given(name):
    check_options({name: OPTIONS[name]["default"]}, OPTIONS[name]["scope"])
    check_options({name: None}, OPTIONS[name]["scope"])


BAD_VALUES = {"text": "no such value", "object": object(), "bytes": b"12", "nan": float("nan"), "-inf": -float("inf"),
              "mapping": {"a": [1.5]}}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "json_schema"])
@pytest.mark.parametrize("value", BAD_VALUES.values(), ids=BAD_VALUES)
def test_a_bad_value_is_named_with_what_would_be_accepted(name, value):
    if isinstance(value, str) and OPTIONS[name]["type"] in ("text", "texts", "tokens"):
        return
    with pytest.raises(ArgumentError) as error:
        check_options({name: value}, OPTIONS[name]["scope"])
    assert str(error.value).startswith(f"{name} = ")
    assert str(error.value).endswith(f": must be {OPTIONS[name]['accepted']}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"temperature": np.float32(0.5), "top_k": np.int64(2)}, {"temperature": 0.5, "top_k": 2}),
        ({"temperature": torch.tensor(0.5), "do_sample": np.True_}, {"temperature": 0.5, "do_sample": True}),
        ({"temperature": decimal.Decimal("0.5"), "top_k": None}, {"temperature": 0.5}),
        ({"suppress_tokens": np.array([1, 2])}, {"suppress_tokens": [1, 2]}),
        ({"suppress_tokens": range(1, 3)}, {"suppress_tokens": (1, 2)}),
        ({"suppress_tokens": {1, 2}}, {"suppress_tokens": torch.tensor([1, 2])}),
        ({"logit_bias": {np.int64(1): np.float64(2)}}, {"logit_bias": OrderedDict({1: 2})}),
        ({"logit_bias": {1: float("-inf")}}, {"suppress_tokens": [1]}),
        ({"sequence_bias": {(1, 2): 1.5, (3,): -1}}, {"sequence_bias": [([1, 2], 1.5), [(3,), -1]]}),
        ({"sequence_bias": {}, "bad_words_ids": (), "logit_bias": {}}, {}),
    ],
)
def test_values_may_be_of_any_library(one, other):
    logits = np.array([0.0, 1.0, 2.0, 3.0, 0.5])
    np.testing.assert_array_equal(warp(logits, [1], **one), warp(logits, [1], **other))


def test_what_a_list_means_to_the_text(demo):
    plain = demo.generate(PROMPT, max_new_tokens=12, do_sample=False).text()
    stop = plain[3:6]
    stopped = plain[: plain.index(stop)]
    options = {"max_new_tokens": 12, "do_sample": False}
    assert demo.generate(PROMPT, stop_strings=stop, **options).text() == stopped
    assert demo.generate(PROMPT, stop_strings=("never", stop), **options).text() == stopped
    assert demo.generate(PROMPT, stop_strings=(), **options).text() == plain
    word = plain.split()[0]
    assert word not in demo.generate(PROMPT, max_new_tokens=12, bad_words=word, do_sample=False).text()
    with demo.session() as session:
        assert session.generate(PROMPT, stop_strings=stop, **options).text() == stopped
        session.reset()
        texts = ["", ""]
        for index, piece in session.samples(2, PROMPT, stop_strings=[stop], **options):
            texts[index] += piece
        assert texts == [stopped, stopped]


def test_a_sampling_option_turns_sampling_on_and_temperature_0_is_greedy(demo):
    def texts(**options):
        return {demo.generate(PROMPT, max_new_tokens=12, ignore_eos=True, **options).text() for _ in range(4)}

    greedy = texts(do_sample=False)
    assert texts(temperature=0) == texts(temperature=0.0, top_p=0.9) == texts(temperature=0, do_sample=True) == greedy
    assert texts(top_p=1.0, do_sample=False) == texts(temperature=3.0, do_sample=False) == greedy
    assert len(texts(temperature=3.0)) == len(texts(temperature=3.0, seed=None)) == 4
    assert len(texts(temperature=3.0, seed=4)) == 1


def test_other_names_are_the_same_options(demo):
    own = demo.generate(PROMPT, max_new_tokens=6, do_sample=False, stop_strings=["zzz"], context_length=64).text()
    assert demo.generate(PROMPT, max_tokens=6, temp=0, stop="zzz", num_ctx=64, n_threads=1).text() == own
    with pytest.raises(ArgumentError, match="temperature = -1"):
        demo.generate(PROMPT, temp=-1)
    with pytest.raises(ArgumentError, match="stop and stop_strings are the same option"):
        demo.generate(PROMPT, stop="a", stop_strings=["b"])


def test_a_grammar_comes_by_its_source_or_compiled(demo):
    def text(**options):
        return demo.generate(PROMPT, max_new_tokens=12, do_sample=False, **options).text()

    expected = text(regex="[a-c]{4}")
    assert text(grammar=Grammar(demo, regex="[a-c]{4}")) == expected
    assert text(grammar='root ::= "yes" | "no"') == text(grammar='start: "yes" | "no"', grammar_syntax="lark")
    schema = {"type": "array", "items": {"const": 1}, "minItems": 2, "maxItems": 2}
    for given in (schema, json.dumps(schema)):
        assert text(json_schema=given, json_whitespace="compact") == "[1,1]"
        assert text(json_schema=given, json_whitespace="spaced") == "[1, 1]"
    assert text(json_schema={"const": 2}, regex=None, grammar=None) == "2"
    for options in ({"regex": "a"}, {"json_schema": True}):
        with pytest.raises(ArgumentError, match="only one of them can be given"):
            text(grammar=Grammar(demo, regex="[a-c]{4}"), **options)
    with pytest.raises(ArgumentError, match="json_schema: must be a schema that JSON can hold"):
        text(json_schema={"const": object()})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda model: model.generate(PROMPT, max_token_number=3),
            "there is no option 'max_token_number': must be one of .*kv_dtype",
        ),
        (
            lambda model: model.generate(PROMPT, max_length=None),
            "there is no option 'max_length': it counts the prompt",
        ),
        (lambda model: model.generate(PROMPT, top_q=object()), r"there is no option 'top_q': did you mean 'top_k'\?"),
        (lambda model: model.generate(PROMPT, backend="cpu"), "there is no option 'backend'"),
        (
            lambda model: model.session(top_p=0.5),
            "there is no option 'top_p' here, it is one of a generation: must be one of context_length, ",
        ),
        (lambda model: model.session().generate(PROMPT, threads=1), "there is no option 'threads'"),
        (
            lambda model: model.session().generate(PROMPT, num_beams=2),
            "there is no option 'num_beams': beams have a search of their own",
        ),
        (lambda model: model.batch(top_p=0.5), "there is no option 'top_p'"),
        (lambda model: model.chat([{"role": "user", "content": "x"}], tool=1), "there is no option 'tool'"),
        (
            lambda model: Model.load(model.path, threads=1),
            "there is no option 'threads' here, it is one of a session: must be one of backend, ",
        ),
        (lambda model: warp(np.zeros(3), threads=1), "there is no option 'threads'"),
        (lambda model: model.session(cpus=[]), r"cpus = \[\]: must be a text"),
        (lambda model: model.session(cpus=[-1]), r"cpus = \[-1\]"),
        (lambda model: Model.load(model.path, mmap=1), "mmap = 1: must be true or false"),
        (lambda model: Model.load(model.path, cache_dir=5), "cache_dir = 5: must be a text"),
        (lambda model: model.generate(PROMPT, regex="\ud800"), "regex: not valid Unicode"),
        (lambda model: model.generate(PROMPT, stop_strings=[""]), "stop_strings"),
        (lambda model: model.generate(PROMPT, dry_sequence_breakers=[[1]], dry_multiplier=1), "dry_sequence_breakers"),
    ],
)
def test_a_call_refuses_what_is_not_its_own(demo, call, message):
    with pytest.raises(ArgumentError, match=message):
        call(demo)


def test_loading_takes_paths(demo_path, tmp_path):
    with Model.load(demo_path, cache_dir=Path(tmp_path), backend="cpu", mmap=False, name=None) as model:
        assert model.generate(PROMPT, max_new_tokens=1).text() is not None
