"""Fields that the server does not know or cannot meet are said, not swallowed."""

from __future__ import annotations

import logging

import openai
import pytest

from llm_server.chat.options import OTHER_NAMES
from llm_server.chat.requests import RESERVED_VARIABLES
from tests.llm_server.conftest import running

MESSAGES = [{"role": "user", "content": "What is a list?"}]
SHORT = {"messages": MESSAGES, "max_tokens": 2}
UNKNOWN = {"keep_alive": "5m", "best": [1], "stream": True, "stream_options": {"include_usage": True, "speed": 2}}


def test_unknown_fields_are_named_in_the_log_and_a_header(server, caplog):
    with caplog.at_level(logging.WARNING, "llm_server"):
        answer = server.http().post("/v1/chat/completions", json=SHORT | UNKNOWN)
    assert answer.status_code == 200
    assert answer.headers["mote-warning"] == "ignored fields: keep_alive, best, stream_options.speed"
    assert "'keep_alive', 'best', 'stream_options.speed'" in caplog.text
    for path, body in [("/v1/completions", {"prompt": "x", "max_tokens": 1}), ("/tokenize", {"prompt": "x"})]:
        assert server.http().post(path, json=body | {"é": 1}).headers["mote-warning"] == 'ignored fields: "\\u00e9"'
    for name, shown in [("a\r\nX: y", r'"a\r\nX: y"'), ("\x7f", r'"\u007f"'), ("", '""'), (" ", '" "')]:
        answer = server.http().post("/tokenize", json={"prompt": "x", name: 1})
        assert (answer.status_code, answer.headers["mote-warning"]) == (200, f"ignored fields: {shown}")
    many = {f"field_{i}": 1 for i in range(5000)}
    assert "and 4990 more" in server.http().post("/tokenize", json={"prompt": "x"} | many).headers["mote-warning"]


def test_known_fields_and_nulls_need_no_warning(server):
    fields = {"user": "me", "metadata": {"a": "b"}, "logit_bias": None, "nonsense": None, "store": False,
              "parallel_tool_calls": True, "service_tier": "auto"}  # fmt: skip
    answer = server.http().post("/v1/chat/completions", json=SHORT | fields)
    assert (answer.status_code, "mote-warning" in answer.headers) == (200, False)


def test_what_cannot_be_met_is_named_too(server):
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    fields = {"store": True, "parallel_tool_calls": False, "tools": tools}
    answer = server.http().post("/v1/chat/completions", json=SHORT | fields)
    assert answer.headers["mote-warning"] == "ignored fields: store, parallel_tool_calls"


def test_options_may_have_the_runner_s_names_and_those_of_others(server, demo):
    own = demo.chat(MESSAGES, max_new_tokens=3, do_sample=False).run()["content"]
    http = server.http()
    for name in ("max_new_tokens", *OTHER_NAMES):
        if OTHER_NAMES.get(name) != "max_tokens":
            continue
        answer = http.post("/v1/chat/completions", json={"messages": MESSAGES, "temperature": 0, name: 3})
        assert (answer.json()["choices"][0]["message"]["content"], "mote-warning" in answer.headers) == (own, False)
    both = {"messages": MESSAGES, "max_tokens": 3, "max_new_tokens": 4}
    answer = http.post("/v1/chat/completions", json=both)
    assert (answer.status_code, "the same option" in answer.text) == (400, True)


def test_strict_servers_refuse_them(demo):
    with running(demo, strict=True) as server:
        client = server.openai()
        client.chat.completions.create(model="demo", **SHORT)
        for fields, param in [({"keep_alive": 1}, "keep_alive"), ({"store": True}, "store")]:
            with pytest.raises(openai.BadRequestError) as raised:
                client.chat.completions.create(model="demo", **SHORT, extra_body=fields)
            assert (raised.value.param, raised.value.code) == (param, "unknown_field")


@pytest.mark.parametrize("name", sorted(RESERVED_VARIABLES))
def test_variables_cannot_take_the_place_of_arguments(server, name):
    answer = server.http().post("/v1/chat/completions", json=SHORT | {"chat_template_kwargs": {name: True}})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, f"chat_template_kwargs.{name}")


def test_texts_become_tokens_and_back(server, demo):
    text = "def f(日本):"
    ids = demo.tokenize(text)
    http = server.http()
    found = http.post("/tokenize", json={"model": "demo", "prompt": text, "return_token_strs": True}).json()
    assert (found["tokens"], found["count"], found["max_model_len"]) == (ids, len(ids), 1024)
    assert len(found["token_strs"]) == len(ids)
    assert http.post("/tokenize", json={"content": text}).json() == {"tokens": demo.tokenize(text, False)}
    pieces = http.post("/tokenize", json={"content": "def f", "with_pieces": True}).json()["tokens"]
    assert "".join(token["piece"] for token in pieces) == "def f"
    chat = http.post("/tokenize", json={"messages": MESSAGES}).json()
    assert chat["tokens"] == demo.apply_chat_template(MESSAGES, add_generation_prompt=True)
    assert http.post("/detokenize", json={"tokens": ids}).json() == {"prompt": text, "content": text}
    for path, body, param in [
        ("/tokenize", {}, "prompt"),
        ("/tokenize", {"prompt": "x", "content": "x"}, "prompt"),
        ("/detokenize", {"tokens": [999999]}, "tokens"),
        ("/detokenize", {"tokens": [-1]}, "tokens[0]"),
    ]:
        error = http.post(path, json=body)
        assert (error.status_code, error.json()["error"]["param"]) == (400, param)
