"""Chats with the official openai client; what is generated is compared with llm_runner's."""

from __future__ import annotations

import json
import math
import re

import openai
import pytest

from tests.llm_server.conftest import TEMPLATE, running
from tests.llm_server.script import force

MESSAGES = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "What is a list?"}]
GREEDY = {"model": "demo", "messages": MESSAGES, "temperature": 0, "max_completion_tokens": 8}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]


@pytest.fixture(scope="module")
def expected(demo):
    reply = demo.chat(MESSAGES, max_new_tokens=8, do_sample=False)
    return reply.run()["content"], reply


def test_a_reply_is_that_of_the_runner(client, expected):
    text, reply = expected
    found = client.chat.completions.create(**GREEDY)
    choice = found.choices[0]
    assert (choice.message.role, choice.message.content) == ("assistant", text)
    assert choice.finish_reason == "length"
    assert (found.object, found.model) == ("chat.completion", "demo")
    assert found.usage.prompt_tokens == reply.prompt_tokens
    assert found.usage.completion_tokens == 8
    assert found.usage.total_tokens == reply.prompt_tokens + 8


def test_a_stream_adds_up_to_the_reply(client, expected):
    chunks = list(client.chat.completions.create(**GREEDY, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == expected[0]
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 2) + ["length"]
    assert len({chunk.id for chunk in chunks}) == 1
    assert (chunks[-1].choices, chunks[-1].usage.completion_tokens) == ([], 8)
    assert all(chunk.usage is None for chunk in chunks[:-1])
    without = list(client.chat.completions.create(**GREEDY, stream=True))
    assert all(chunk.usage is None and chunk.choices for chunk in without)


def test_a_further_turn_reads_its_new_text_only(client, expected):
    first = client.chat.completions.create(**GREEDY)
    messages = [*MESSAGES, first.choices[0].message.model_dump(include={"role", "content"}),
                {"role": "user", "content": "And a tuple?"}]  # fmt: skip
    second = client.chat.completions.create(**GREEDY | {"messages": messages})
    cached = second.usage.prompt_tokens_details.cached_tokens
    assert first.usage.prompt_tokens + 5 <= cached < second.usage.prompt_tokens
    again = client.chat.completions.create(**GREEDY | {"messages": messages})
    assert again.choices[0].message.content == second.choices[0].message.content


def test_a_seed_repeats_and_choices_differ(client):
    options = GREEDY | {"temperature": 1.5, "n": 3, "seed": -4}
    first, second = (client.chat.completions.create(**options) for _ in range(2))
    texts = [choice.message.content for choice in first.choices]
    assert texts == [choice.message.content for choice in second.choices]
    assert len(set(texts)) == 3
    assert [choice.index for choice in first.choices] == [0, 1, 2]
    assert first.usage.completion_tokens == 24
    streamed = {0: "", 1: "", 2: ""}
    for chunk in client.chat.completions.create(**options, stream=True):
        streamed[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert list(streamed.values()) == texts
    single = client.chat.completions.create(**options | {"n": 1, "seed": -3})
    assert single.choices[0].message.content == texts[1]


def test_logprobs_are_those_of_the_runner(client, demo):
    reply = demo.chat(MESSAGES, max_new_tokens=8, do_sample=False, top_logprobs=3)
    reply.run()
    whole = client.chat.completions.create(**GREEDY, logprobs=True, top_logprobs=3).choices[0]
    chunks = list(client.chat.completions.create(**GREEDY, logprobs=True, top_logprobs=3, stream=True))
    streamed = [entry for chunk in chunks if chunk.choices[0].logprobs for entry in chunk.choices[0].logprobs.content]
    for content in (whole.logprobs.content, streamed):
        assert [entry.logprob for entry in content] == [entry.logprob for entry in reply.logprobs]
        assert "".join(entry.token for entry in content) == whole.message.content
        assert b"".join(bytes(entry.bytes) for entry in content).decode() == whole.message.content
        for entry, own in zip(content, reply.logprobs, strict=True):
            assert [top.logprob for top in entry.top_logprobs] == [logprob for _, logprob in own.top]
            assert all(math.isfinite(top.logprob) for top in entry.top_logprobs)
    assert client.chat.completions.create(**GREEDY).choices[0].logprobs is None


def test_stop_strings_bias_and_penalties_do_what_they_do_in_the_runner(client, demo, expected):
    text, reply = expected
    stopped = client.chat.completions.create(**GREEDY, stop=["never", text[5:8]]).choices[0]
    assert (stopped.message.content, stopped.finish_reason) == (text[: text.index(text[5:8])], "stop")
    first = reply.token_ids[0]
    for given, own in [
        ({"logit_bias": {str(first): -100}}, {"logit_bias": {first: -100}}),
        ({"presence_penalty": 2, "frequency_penalty": 1.5}, {"presence_penalty": 2, "frequency_penalty": 1.5}),
        (
            {"extra_body": {"repetition_penalty": 1.5, "min_tokens": 4}},
            {"repetition_penalty": 1.5, "min_new_tokens": 4},
        ),
        (
            {"temperature": 0.7, "top_p": 0.9, "seed": 5},
            {"do_sample": True, "temperature": 0.7, "top_p": 0.9, "seed": 5},
        ),
    ]:
        found = client.chat.completions.create(**GREEDY | given).choices[0].message.content
        assert found == demo.chat(MESSAGES, **{"do_sample": False, "max_new_tokens": 8} | own).run()["content"]


def test_options_of_the_runner_are_fields_by_their_names(client, demo, expected):
    first = expected[1].token_ids[0]
    for options in [
        {"top_k": 5, "top_n_sigma": 1.5, "typical_p": 0.9, "xtc_probability": 0.5, "xtc_threshold": 0.05, "seed": 3},
        {"do_sample": True, "mirostat": 2, "mirostat_tau": 3.0, "seed": 4},
        {"do_sample": False, "dry_multiplier": 1.5, "dry_allowed_length": 1, "dry_sequence_breakers": [" "]},
        {"do_sample": False, "no_repeat_ngram_size": 2, "bad_words": ["a"], "sequence_bias": [[[first], -50]]},
        {"do_sample": False, "suppress_tokens": [first], "speculative": "lookup", "draft_tokens": 3},
        {"do_sample": False, "regex": "[a-f]{12}"},
        {"do_sample": False, "json_schema": {"type": "integer"}, "json_whitespace": "compact"},
        {"do_sample": False, "grammar": 'start: "yes" | "no"', "grammar_syntax": "lark"},
    ]:
        asked = {name: value for name, value in GREEDY.items() if name != "temperature"}
        found = client.chat.completions.create(**asked, extra_body=options).choices[0].message.content
        assert found == demo.chat(MESSAGES, max_new_tokens=8, **options).run()["content"], options


def test_contents_may_come_in_parts_and_developers_are_systems(client, expected):
    messages = [
        {"role": "developer", "content": "Be short."},
        {"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "a list?"}]},
    ]
    assert client.chat.completions.create(**GREEDY | {"messages": messages}).choices[0].message.content == expected[0]


def test_a_reply_goes_on_with_the_last_message(client, demo):
    messages = [*MESSAGES, {"role": "assistant", "content": "Return a dict of"}]
    found = client.chat.completions.create(
        **GREEDY | {"messages": messages}, extra_body={"continue_final_message": True}
    )
    own = demo.chat(messages, continue_final_message=True, max_new_tokens=8, do_sample=False)
    assert found.choices[0].message.content == own.run()["content"]
    assert found.usage.prompt_tokens == own.prompt_tokens


@pytest.fixture(scope="module")
def scripted(with_template):
    """A server of a model that reasons and calls tools; `force` says what it writes."""
    model = with_template(TEMPLATE)
    with running(model) as server:
        yield server, model


CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'


def test_tool_calls_go_round(scripted, monkeypatch):
    server, model = scripted
    client = server.openai()
    force(monkeypatch, model, f"I look.{CALL}\n{CALL}")
    asked = {"model": "demo", "messages": MESSAGES, "tools": TOOLS}
    choice = client.chat.completions.create(**asked).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "I look."
    ids = [call.id for call in choice.message.tool_calls]
    again = client.chat.completions.create(**asked).choices[0].message.tool_calls
    assert len({*ids, *(call.id for call in again)}) == 4
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", id) for id in ids)
    assert choice.message.tool_calls[0].function.name == "get_weather"
    assert json.loads(choice.message.tool_calls[0].function.arguments) == {"city": "Paris"}
    with client.chat.completions.stream(**asked) as stream:  # the client puts the pieces together
        for _ in stream:
            pass
        streamed = stream.get_final_completion().choices[0]
    assert streamed.finish_reason == "tool_calls"
    assert [call.function.arguments for call in streamed.message.tool_calls] == [
        call.function.arguments for call in choice.message.tool_calls
    ]
    force(monkeypatch, model, "Sunny.")
    results = [{"role": "tool", "tool_call_id": call.id, "content": "21"} for call in choice.message.tool_calls]
    messages = [*MESSAGES, choice.message.model_dump(exclude_none=True), *results]
    done = client.chat.completions.create(**asked | {"messages": messages}).choices[0]
    assert (done.message.content, done.finish_reason, done.message.tool_calls) == ("Sunny.", "stop", None)


def test_a_malformed_call_is_content(scripted, monkeypatch):
    server, model = scripted
    force(monkeypatch, model, '<tool_call>\n{"name": "get_weather", "arguments": {x')
    asked = {"model": "demo", "messages": MESSAGES, "tools": TOOLS}
    choice = server.openai().chat.completions.create(**asked).choices[0]
    assert (choice.finish_reason, choice.message.tool_calls) == ("stop", None)
    chunks = list(server.openai().chat.completions.create(**asked, stream=True))
    assert all(not chunk.choices[0].delta.tool_calls for chunk in chunks)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == choice.message.content
    assert "{x" in choice.message.content


def test_reasoning_is_apart_and_template_variables_arrive(scripted, monkeypatch):
    server, model = scripted
    force(monkeypatch, model, "Hm.\n</think>\n\nYes")
    asked = {"model": "demo", "messages": MESSAGES, "extra_body": {"chat_template_kwargs": {"enable_thinking": True}}}
    message = server.openai().chat.completions.create(**asked).choices[0].message
    assert (message.content, message.reasoning_content) == ("Yes", "Hm.")
    chunks = list(server.openai().chat.completions.create(**asked, stream=True))
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert "".join(getattr(delta, "reasoning_content", "") or "" for delta in deltas) == "Hm."
    assert "".join(delta.content or "" for delta in deltas) == "Yes"


def test_tools_are_shown_to_the_model_unless_the_choice_is_none(scripted):
    server, _ = scripted

    def prompt_tokens(**options):
        asked = {"model": "demo", "messages": MESSAGES, "max_tokens": 1}
        return server.openai().chat.completions.create(**asked | options).usage.prompt_tokens

    plain = prompt_tokens()
    assert prompt_tokens(tools=TOOLS, tool_choice="none") == plain
    assert prompt_tokens(tools=TOOLS) == prompt_tokens(tools=TOOLS, tool_choice="auto") > plain


@pytest.mark.parametrize(
    ("change", "param", "text"),
    [
        ({"messages": []}, "messages", "at least 1"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages[0].role", "must be one of system"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content", "must be a string"),
        ({"messages": [{"role": "user"}]}, "messages[0].content", "must be a string"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0].type", "text"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{x"}}]}]},
         "messages[0].tool_calls[0].function.arguments", "JSON"),
        ({"temperature": 3}, "temperature", "less than or equal to 2"),
        ({"temperature": "hot"}, "temperature", "number"),
        ({"top_p": -0.1}, "top_p", "top_p = -0.1: must be a number, 0..1 (1: off)"),
        ({"n": 0}, "n", "greater than or equal to 1"),
        ({"n": 10**6}, "n", "less than or equal to 16"),
        ({"max_tokens": -1}, "max_tokens", "greater"),
        ({"max_completion_tokens": 2**63}, "max_completion_tokens", "less"),
        ({"logit_bias": {"x": 1}}, "logit_bias", "token id"),
        ({"logit_bias": {"5": 101}}, "logit_bias", "less than or equal to 100"),
        ({"logit_bias": {"999999": 1}}, None, "999999"),
        ({"stop": [""]}, "stop", "empty"),
        ({"stop": ["x"] * 65}, "stop", "at most 64"),
        ({"seed": 2**65}, "seed", "less"),
        ({"top_logprobs": 3}, "top_logprobs", "logprobs = true"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "20"),
        ({"stream_options": {"include_usage": True}}, None, "stream = true"),
        ({"tools": [{"type": "function"}]}, "tools[0]", "function"),
        ({"extra_body": {"functions": []}}, "functions", "tools"),
        ({"extra_body": {"typical_p": 0}}, "typical_p", "typical_p = 0: must be a number above 0, at most 1"),
        ({"extra_body": {"top_k": 1.5}}, "top_k", "must be an integer"),
        ({"extra_body": {"do_sample": 1}}, "do_sample", "must be true or false"),
        ({"extra_body": {"mirostat": 1}}, "mirostat", "must be one of 0, 2"),
        ({"extra_body": {"bad_words": [""]}}, "bad_words", "none of them empty"),
        ({"extra_body": {"sequence_bias": [[[5], "much"]]}}, "sequence_bias", "a list of token ids with a number"),
        ({"extra_body": {"min_tokens": -1}}, "min_tokens", "greater than or equal to 0"),
        ({"extra_body": {"stop_token_ids": [999999]}}, None, "stop_token_ids"),
        ({"extra_body": {"speculative": "draft"}}, None, "no draft model"),
        ({"extra_body": {"regex": "a", "json_schema": {}}}, "regex", "only one of them can be given"),
        ({"extra_body": {"regex": "(", "stream": True}}, "regex", "regex: line 1, column 2: a group is not closed"),
        ({"extra_body": {"regex": "a"}, "response_format": {"type": "json_object"}}, "response_format",
         "another grammar"),
        ({"extra_body": {"json_schema": {}}, "tools": TOOLS, "tool_choice": "required"}, "tool_choice",
         "another grammar"),
        ({"response_format": {"type": "xml"}}, "response_format.type", "json_schema"),
    ],
)  # fmt: skip
def test_bad_requests_name_the_field(client, change, param, text):
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(**GREEDY | change)
    error = raised.value.body
    assert (error["param"], error["type"]) == (param, "invalid_request_error")
    assert text in error["message"]


def test_another_model_and_too_long_prompts_are_refused(client):
    with pytest.raises(openai.NotFoundError, match="'gpt-4' does not exist: this server has 'demo'"):
        client.chat.completions.create(**GREEDY | {"model": "gpt-4"})
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(**GREEDY | {"messages": [{"role": "user", "content": "list " * 3000}]})
    assert raised.value.code == "context_length_exceeded"
    assert "context of 1024" in raised.value.body["message"]


def test_a_model_without_a_template_says_where_to_go(with_template):
    with running(with_template("")) as server, pytest.raises(openai.BadRequestError, match="/v1/completions"):
        server.openai().chat.completions.create(**GREEDY)


def test_what_the_template_refuses_is_a_bad_request(with_template):
    refusing = with_template("{{ raise_exception('users first') }}")
    with running(refusing) as server, pytest.raises(openai.BadRequestError, match="users first"):
        server.openai().chat.completions.create(**GREEDY)
