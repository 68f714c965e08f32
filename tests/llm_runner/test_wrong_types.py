"""An argument of a wrong type is an ArgumentError that names it, in every call of the package."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import llm_runner
from llm_runner import ArgumentError, Model, TemplateError

WRONG = object()
ONE = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
# Classes that the fixture makes one of.
RECEIVERS = ("Model", "Session", "Batch", "PrefixCache", "ReplyParser")
# What gives a call all it needs, where that is not found by the parameter's name.
MESSAGES = [{"role": "user", "content": "x"}]
ARGUMENTS = {
    "id": 1, "ids": [1, 2], "content": [1, 2], "prompt": [1, 2], "prompts": [[1, 2]], "texts": ["x"], "text": "x",
    "count": 1,
    "position": 0, "sequence": 0, "messages": MESSAGES, "conversation": MESSAGES, "template": "x", "max_bytes": 1,
    "previous_ids": [1], "logits": np.zeros(8, np.float32), "options": {}, "prompt_ids": [1], "tokenizer_json": "{}",
}  # fmt: skip
# Of whose arguments some are only looked at later, or that take anything.
LATER = {
    ("Session", "record", "take"), ("Batch", "wait", "timeout"), ("Session", "reply", "conversation"),
    ("check_options", "", "options"), ("Session", "append", "tools"),
}  # fmt: skip


@pytest.fixture(scope="module")
def receivers(demo):
    session = demo.session(context_length=32)
    session.prefill([1, 2, 3])
    return {
        "Model": demo,
        "Session": session,
        "Batch": demo.batch(2),
        "PrefixCache": llm_runner.PrefixCache(1000),
        "ReplyParser": llm_runner.ReplyParser("", ""),
    }


def parameters():
    for name in llm_runner.__all__:
        public = getattr(llm_runner, name)
        if inspect.isclass(public):
            if name in RECEIVERS:
                for method, member in inspect.getmembers(
                    public, lambda each: inspect.isfunction(each) or inspect.ismethod(each)
                ):
                    if not method.startswith("_"):
                        yield from ((name, method, each) for each in annotated(member))
        elif callable(public):
            yield from ((name, "", each) for each in annotated(public))


def annotated(function):
    return [
        name for name, each in inspect.signature(function).parameters.items()
        if name != "self" and each.kind in ONE and each.annotation not in (each.empty, "Any", "bool")
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "method", "parameter"), [each for each in parameters() if each not in LATER])
def test_every_argument_of_a_wrong_type_is_named(receivers, demo_path, name, method, parameter):
    call = getattr(receivers[name], method) if name in receivers else getattr(llm_runner, name)
    given = {
        each: ARGUMENTS.get(each, demo_path)
        for each, about in inspect.signature(call).parameters.items()
        if about.default is about.empty and about.kind in ONE
    }
    with pytest.raises((ArgumentError, TemplateError)):  # what a template says of its conversation
        found = call(**given | {parameter: WRONG})
        if hasattr(found, "__next__"):
            next(found)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: Model.load(model.path, on_progress=5), "on_progress = 5: must be Callable"),
        (lambda model: Model.load(model.path, backend=5), "backend = 5: must be"),
        (lambda model: Model.load(Path(model.path), cache_dir=5), "cache_dir = 5: must be"),
        (lambda model: Model.load(None), "not from NoneType"),
        (lambda model: model.session(prefix_cache=5), "prefix_cache = 5: must be PrefixCache | None, not int"),
        (lambda model: model.session(draft_model="x"), "model = 'x': must be LoadedModel | None, not str"),
        (lambda model: model.session().save(5), "path = 5: must be str | os.PathLike[str], not int"),
        (lambda model: model.session().set_batch(5), "batch = 5: must be Batch | None, not int"),
        (lambda model: model.generate("x", streamer=5), "streamer = 5: must be Streamer, not int"),
        (lambda model: model.generate_batch(["x", "y"], seed="1"), 'seed = "1": must be an integer'),
        (lambda model: llm_runner.Batch(5), "model = 5: must be LoadedModel, not int"),
    ],
)
def test_the_message_names_argument_value_and_what_is_accepted(demo, call, message):
    with pytest.raises(ArgumentError) as caught:
        call(demo)
    assert message in str(caught.value)


def test_errors_of_the_callers_own_code_stay_what_they_are(demo):
    def fails(fraction):
        raise TypeError("of mine")

    with pytest.raises(TypeError, match="of mine"):
        Model.load(demo.path, on_progress=fails)
    with pytest.raises(TypeError, match="missing 1 required"):
        demo.tokenize()
    with pytest.raises(TypeError, match="unexpected keyword"):
        demo.tokenize("x", colour="red")
