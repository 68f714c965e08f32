"""Replies that must be JSON of a schema, also at temperature 2; the oracles are jsonschema and the openai client."""

from __future__ import annotations

import json
import threading
import time

import httpx
import jsonschema
import openai
import pytest
from pydantic import BaseModel

from llm_runner import CancelledError, Grammar
from tests.llm_server.conftest import TEMPLATE, WAIT, running

MESSAGES = [{"role": "user", "content": "What is a list?"}]
HOT = {"model": "demo", "messages": MESSAGES, "temperature": 2, "max_completion_tokens": 600}


class Step(BaseModel):
    title: str
    minutes: int


class Plan(BaseModel):
    steps: list[Step]
    done: bool


SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["list", "tuple"]},
        "size": {"type": "integer", "minimum": 0, "maximum": 99},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
    },
    "required": ["kind", "size", "tags"],
    "additionalProperties": False,
}
LOOK = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Rome"]}, "days": {"type": "integer", "maximum": 9, "minimum": 0}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": "look", "parameters": LOOK}},
    {"type": "function", "function": {"name": "wait", "parameters": {"type": "object", "additionalProperties": False}}},
]


def schema_format(schema):
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}


def test_json_schemas_hold(client):
    for seed in range(10):
        choice = client.chat.completions.create(**HOT, seed=seed, response_format=schema_format(SCHEMA)).choices[0]
        assert choice.finish_reason == "stop"
        jsonschema.validate(json.loads(choice.message.content), SCHEMA)
    chunks = client.chat.completions.create(**HOT, seed=3, response_format=schema_format(SCHEMA), stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    jsonschema.validate(json.loads(text), SCHEMA)


def test_the_client_parses_into_a_class(client):
    for seed in range(20):
        try:
            found = client.chat.completions.parse(**HOT, seed=seed, response_format=Plan)
        except openai.LengthFinishReasonError:
            continue  # a string of random text may be long
        assert isinstance(found.choices[0].message.parsed, Plan)
        break
    else:
        pytest.fail("every reply was too long")


def test_json_objects_are_objects(client):
    found = client.chat.completions.create(
        **HOT | {"temperature": 0.5}, seed=1, response_format={"type": "json_object"}
    )
    assert found.choices[0].message.content.startswith("{")
    if found.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(found.choices[0].message.content), dict)


@pytest.fixture(scope="module")
def thinker(with_template):
    """A server of a model whose prompt begins its reasoning."""
    with running(with_template(TEMPLATE)) as server:
        yield server.openai()


@pytest.mark.parametrize("thinking", [False, True])
def test_tools_that_must_be_called_are_called(thinker, thinking):
    asked = HOT | {"tools": TOOLS, "extra_body": {"chat_template_kwargs": {"enable_thinking": thinking}}}
    for seed in range(6):
        choice = thinker.chat.completions.create(**asked, seed=seed, tool_choice="required").choices[0]
        assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
        call = choice.message.tool_calls[0]
        schema = next(
            tool["function"]["parameters"] for tool in TOOLS if tool["function"]["name"] == call.function.name
        )
        jsonschema.validate(json.loads(call.function.arguments), schema)
    named = {"type": "function", "function": {"name": "look"}}
    with thinker.chat.completions.stream(**asked, seed=1, tool_choice=named) as stream:
        for _ in stream:
            pass
        streamed = stream.get_final_completion().choices[0]
    assert (streamed.finish_reason, streamed.message.tool_calls[0].function.name) == ("tool_calls", "look")
    jsonschema.validate(json.loads(streamed.message.tool_calls[0].function.arguments), LOOK)


def test_a_call_that_is_cut_off_is_text(client):
    options = HOT | {"tools": TOOLS, "max_completion_tokens": 3, "tool_choice": "required"}
    choice = client.chat.completions.create(**options).choices[0]
    assert (choice.finish_reason, choice.message.tool_calls) == ("length", None)
    assert choice.message.content.startswith("{")


@pytest.mark.parametrize(
    ("change", "param", "text"),
    [
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", "required"),
        ({"response_format": schema_format({"type": "text"})}, "response_format.json_schema.schema", "text"),
        ({"response_format": {"type": "json_object"}, "tools": TOOLS, "tool_choice": "required"}, "response_format",
         "call a tool"),
        ({"tool_choice": "required"}, "tool_choice", "needs tools"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "x"}}}, "tool_choice", "one of"),
        ({"tools": TOOLS, "tool_choice": "sometimes"}, "tool_choice", "required"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "x"}}}],
          "tool_choice": "required"}, "tools", "x"),
    ],
)  # fmt: skip
def test_what_cannot_be_met_is_refused(client, change, param, text):
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(**HOT | change)
    assert raised.value.body["param"] == param
    assert text in raised.value.body["message"]


YES_OR_NO = 'root ::= "yes" | "no"'


@pytest.mark.parametrize(
    ("fields", "texts"),
    [
        ({"guided_choice": ["yes", 'n"o', "\\"]}, {"yes", 'n"o', "\\"}),
        ({"guided_regex": "a{3}|b"}, {"aaa", "b"}),
        ({"guided_json": {"enum": [1, 2]}}, {"1", "2"}),
        ({"guided_json": '{"const": "x"}'}, {'"x"'}),
        ({"guided_grammar": YES_OR_NO}, {"yes", "no"}),
        ({"structured_outputs": {"choice": ["x"]}}, {"x"}),
        ({"structured_outputs": {"regex": "[cd]"}}, {"c", "d"}),
        ({"structured_outputs": {"json": {"const": 5}}}, {"5"}),
        ({"structured_outputs": {"grammar": YES_OR_NO}}, {"yes", "no"}),
        ({"grammar": YES_OR_NO}, {"yes", "no"}),
        ({"json_schema": {"const": None}}, {"null"}),
        ({"response_format": {"type": "json_object", "schema": {"const": 7}}}, {"7"}),
    ],
)  # fmt: skip
def test_constraints_have_the_names_of_vllm_and_llama_cpp(client, fields, texts):
    chat = client.chat.completions.create(**HOT, extra_body=fields).choices[0]
    assert (chat.message.content in texts, chat.finish_reason) == (True, "stop")
    if "response_format" not in fields:
        found = client.completions.create(model="demo", prompt="x", temperature=2, extra_body=fields).choices[0]
        assert found.text in texts


@pytest.mark.parametrize(
    ("fields", "param", "text"),
    [
        ({"guided_choice": []}, "guided_choice", "none of them empty"),
        ({"guided_regex": "("}, "guided_regex", "guided_regex: line 1, column 2"),
        ({"structured_outputs": {"json": {"type": "x"}}}, "structured_outputs.json", "structured_outputs.json: "),
        ({"guided_regex": "a", "guided_choice": ["a"]}, "guided_choice", "guided_regex and guided_choice both"),
        ({"grammar_syntax": "lark"}, "grammar_syntax", "needs a grammar"),
    ],
)
def test_bad_constraints_name_the_field_they_came_in(client, fields, param, text):
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(**HOT, extra_body=fields)
    assert raised.value.body["param"] == param
    assert text in raised.value.body["message"]


def test_a_grammar_that_takes_long_delays_only_grammars(demo, monkeypatch):
    begun, may_end = threading.Event(), threading.Event()

    def slowly(*arguments, **source):
        begun.set()
        may_end.wait()
        return Grammar(*arguments, **source)

    monkeypatch.setattr("llm_server.chat.turn.Grammar", slowly)
    found = []

    def ask(**fields):
        asked = {"model": "demo", "messages": MESSAGES, "max_tokens": 4} | {"extra_body": fields}
        found.append((fields, server.openai().chat.completions.create(**asked).choices[0].message.content))

    with running(demo, timeout=20) as server:
        threads = [threading.Thread(target=ask, kwargs={"regex": regex}) for regex in ("a", "b")]
        for thread in threads:
            thread.start()
        assert begun.wait(WAIT)
        ask()
        assert [fields for fields, _ in found] == [{}]
        may_end.set()
        for thread in threads:
            thread.join()
    assert sorted(text for fields, text in found if fields) == ["a", "b"]


def test_a_grammar_that_takes_too_long_is_given_up(demo, monkeypatch):
    def endless(*_, is_cancelled, **__):
        while not is_cancelled():
            time.sleep(0.001)
        ended.set()
        raise CancelledError("as the library does")

    ended = threading.Event()
    monkeypatch.setattr("llm_server.chat.turn.Grammar", endless)
    with running(demo, timeout=0.2) as server:
        with pytest.raises(openai.InternalServerError) as raised:
            server.openai().chat.completions.create(**HOT, extra_body={"regex": "a"})
        assert (raised.value.status_code, raised.value.code) == (503, "grammar_timeout")
        assert ended.wait(WAIT)
        ended.clear()
        with running(demo) as patient, patient.http() as http, pytest.raises(httpx.ReadTimeout):
            http.post("/v1/chat/completions", json={"messages": MESSAGES, "regex": "a"}, timeout=0.2)
        assert ended.wait(WAIT)  # nobody waits for it
