"""Replies in every format that is known: what they say, however they are cut, and what is no call."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_runner import ArgumentError, ReplyEvent, ReplyParser, parse_reply, reply_formats

BAR, LOW = "\uff5c", "\u2581"
NESTED = {"a": "x", "b": [1, {"c": None}], "d": True, "e": -2.5}
AS_JSON = json.dumps(NESTED)


def call(name, arguments, **more):
    return {"type": "function", **more, "function": {"name": name, "arguments": arguments}}


def deepseek(text):
    return text.replace("|", BAR).replace("_", LOW)


def minimax(text):
    return text.replace("@", "]<]minimax[>[")


# format -> (reply, content, reasoning, calls)
REPLIES = {
    "hermes": (
        f'<think>\nR\n</think>\n\nHi\n<tool_call>\n{{"name": "f", "arguments": {AS_JSON}}}\n</tool_call>\n'
        '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call><|im_end|>\n',
        "Hi",
        "R",
        [call("f", NESTED), call("g", {})],
    ),
    "qwen3-coder": (
        "<think>\nR\n</think>\n\nHi\n\n<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n<parameter=b>\n"
        '[1, {"c": null}]\n</parameter>\n<parameter=d>\nTrue\n</parameter>\n<parameter=e>\n-2.5\n</parameter>\n'
        "</function>\n</tool_call>\n<tool_call>\n<function=g>\n</function>\n</tool_call>",
        "Hi",
        "R",
        [call("f", NESTED), call("g", {})],
    ),
    "seed-oss": (
        "<seed:think>R</seed:think>\nHi\n\n<seed:tool_call>\n<function=f>\n<parameter=a>x</parameter>\n<parameter=b>"
        "[1, {'c': None}]</parameter>\n<parameter=d>True</parameter>\n<parameter=e>-2.5</parameter>\n</function>\n"
        "</seed:tool_call><seed:eos>",
        "Hi",
        "R",
        [call("f", NESTED)],
    ),
    "glm": (
        "\n<think>R</think>\nHi\n<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n<arg_key>b</arg_key>\n"
        '<arg_value>[1, {"c": null}]</arg_value><arg_key>d</arg_key><arg_value>true</arg_value><arg_key>e</arg_key>'
        "<arg_value>-2.5</arg_value>\n</tool_call><tool_call>g</tool_call>",
        "Hi",
        "R",
        [call("f", NESTED), call("g", {})],
    ),
    "minimax-m2": (
        '<think>\nR\n</think>\n\nHi\n<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">x</parameter>\n'
        '<parameter name="b">[1, {"c": null}]</parameter>\n</invoke>\n<invoke name="g">\n</invoke>\n'
        "</minimax:tool_call>[e~[",
        "Hi",
        "R",
        [call("f", {"a": "x", "b": [1, {"c": None}]}), call("g", {})],
    ),
    "minimax-m3": (
        minimax(
            '<mm:think>R</mm:think>Hi@<tool_call>\n@<invoke name="f">@<a>x@</a>@<b>@<item>1@</item>@<item>@<c>null@</c>'
            '@</item>@</b>@<d>true@</d>@</invoke>\n@<invoke name="g">@</invoke>\n@</tool_call>[e~['
        ),
        "Hi",
        "R",
        [call("f", {"a": "x", "b": [1, {"c": None}], "d": True}), call("g", {})],
    ),
    "deepseek-v4": (
        deepseek('<think>R</think>Hi\n\n<|DSML|tool@calls>\n<|DSML|invoke name="f">\n').replace("@", "_")
        + deepseek('<|DSML|parameter name="a" string="true">x</|DSML|parameter>\n')
        + deepseek('<|DSML|parameter name="b" string="false">[1, {"c": null}]</|DSML|parameter>\n')
        + deepseek('<|DSML|parameter name="n" string="true">1</|DSML|parameter>\n</|DSML|invoke>\n')
        + deepseek("</|DSML|tool@calls><|end_of_sentence|>").replace("@", "_"),
        "Hi",
        "R",
        [call("f", {"a": "x", "b": [1, {"c": None}], "n": "1"})],
    ),
    "deepseek-v3.1": (
        "<think>R</think>Hi"
        + deepseek("<|tool_calls_begin|><|tool_call_begin|>f<|tool_sep|>")
        + AS_JSON
        + deepseek("<|tool_call_end|><|tool_call_begin|>g<|tool_sep|>{}<|tool_call_end|><|tool_calls_end|>"),
        "Hi",
        "R",
        [call("f", NESTED), call("g", {})],
    ),
    "deepseek-r1": (
        "<think>\nR\n</think>\n\n"
        + deepseek("<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>f\n```json\n")
        + AS_JSON
        + deepseek("\n```<|tool_call_end|>\n<|tool_call_begin|>function<|tool_sep|>g\n```json\n{}\n```")
        + deepseek("<|tool_call_end|><|tool_calls_end|><|end_of_sentence|>"),
        "",
        "R",
        [call("f", NESTED), call("g", {})],
    ),
    "kimi-k2": (
        "<think>R</think>Hi<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
        f"{AS_JSON}<|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{{}}<|tool_call_end|>"
        "<|tool_calls_section_end|>",
        "Hi",
        "R",
        [call("f", NESTED, id="functions.f:0"), call("g", {}, id="functions.g:1")],
    ),
    "mistral": (
        f"[THINK]R[/THINK]Hi[TOOL_CALLS]f[ARGS]{AS_JSON}[TOOL_CALLS]g[CALL_ID]abc123def[ARGS]{{}}</s>",
        "Hi",
        "R",
        [call("f", NESTED), call("g", {}, id="abc123def")],
    ),
    "mistral-list": (
        f'[TOOL_CALLS] [{{"name": "f", "arguments": {AS_JSON}, "id": "abc123def"}}, '
        '{"name": "g", "arguments": {}}]</s>',
        "",
        "",
        [call("f", NESTED, id="abc123def"), call("g", {})],
    ),
    "gemma-4": (
        '<|channel>thought\nR<channel|><|tool_call>call:f{a:<|"|>x<|"|>,b:[1,{c:None}],d:true,e:-2.5}<tool_call|>'
        "<|tool_call>call:g{}<tool_call|>Hi<turn|>",
        "Hi",
        "R",
        [call("f", NESTED), call("g", {})],
    ),
    "functiongemma": (
        "<start_function_call>call:f{a:<escape>x<escape>,d:true}<end_function_call>",
        "",
        "",
        [call("f", {"a": "x", "d": True})],
    ),
    "gemma": (
        "Hi\n```tool_code\nf(a='x', b=[1, {'c': None}])\n```",
        "Hi",
        "",
        [call("f", {"a": "x", "b": [1, {"c": None}]})],
    ),
    "lfm2": (
        "<think>R</think>\n<|tool_call_start|>[f(a='x', b=[1, {'c': None}], d=True, e=-2.5), g()]<|tool_call_end|>Hi",
        "Hi",
        "R",
        [call("f", NESTED), call("g", {})],
    ),
    "functionary": (
        f'Hi<function=f>{AS_JSON}</function><function=g>{{}}</function><|python_tag|>{{"code": "1+1"}}<|eom_id|>',
        "Hi",
        "",
        [call("f", NESTED), call("g", {}), call("python", {"code": "1+1"})],
    ),
    "gpt-oss": (
        "<|channel|>analysis<|message|>R<|end|><|start|>assistant<|channel|>commentary<|message|>Hi<|end|>"
        f"<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{AS_JSON}<|call|>",
        "Hi",
        "R",
        [call("f", NESTED)],
    ),
    "solar": (
        "<|think|>R<|end|><|begin|>assistant<|content|>Hi<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>id1"
        f"<|tool_call:name|>f<|tool_call:args|>{AS_JSON}<|tool_call:end|><|tool_call:begin|>id2<|tool_call:name|>g"
        "<|tool_call:args|>{}<|tool_call:end|><|calls|>",
        "Hi",
        "R",
        [call("f", NESTED, id="id1"), call("g", {}, id="id2")],
    ),
    "apriel": (
        "Here are my reasoning steps:\nR\n[BEGIN FINAL RESPONSE]\nHi\n"
        f'<tool_calls>[{{"name": "f", "arguments": {AS_JSON}, "id": "1"}}]</tool_calls>\n<|end|>',
        "Hi",
        "R",
        [call("f", NESTED, id="1")],
    ),
    "tool-calls-list": (
        f'<think>\nR\n</think>\n\n<tool_calls>\n{{"name": "f", "arguments": {AS_JSON}}}\n'
        '{"name": "g", "arguments": {}}\n</tool_calls>',
        "",
        "R",
        [call("f", NESTED), call("g", {})],
    ),
    "granite-3": (
        f'<think>R</think>\n<response>Hi</response><|tool_call|>[{{"name": "f", "arguments": {AS_JSON}}}]',
        "Hi",
        "R",
        [call("f", NESTED)],
    ),
    "gigachat": (
        f'Hi<|message_sep|>\n\nfunction call<|role_sep|>\n{{"name": "f", "arguments": {AS_JSON}}}<|message_sep|>\n\n',
        "Hi",
        "",
        [call("f", NESTED)],
    ),
    "cohere": (
        '<|START_THINKING|>R<|END_THINKING|><|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "f", '
        f'"parameters": {AS_JSON}}}\n]<|END_ACTION|>',
        "",
        "R",
        [call("f", NESTED, id="0")],
    ),
    "command-r": (
        f'Hi\nAction: ```json\n[\n    {{\n        "tool_name": "f",\n        "parameters": {AS_JSON}\n    }}\n]```',
        "Hi",
        "",
        [call("f", NESTED)],
    ),
    "firefunction": (
        f'Hi functools[{{"name": "f", "arguments": {AS_JSON}}}, {{"name": "g", "arguments": {{}}}}]<|eot_id|>',
        "Hi",
        "",
        [call("f", NESTED), call("g", {})],
    ),
    "llama-3": (
        f'{{"name": "f", "parameters": {AS_JSON}}}; {{"name": "g", "parameters": {{}}}}<|eom_id|>',
        "",
        "",
        [call("f", NESTED), call("g", {})],
    ),
    "think": ("<think>\nR\n</think>\n\nHi <tool_call>", "Hi <tool_call>", "R", []),
    "call": ('{"name": "f", "arguments": ' + json.dumps(NESTED) + "}", "", "", [call("f", NESTED)]),
    "text": ("<think>\nR\n</think>\n\nHi<|im_end|>", "<think>\nR\n</think>\n\nHi<|im_end|>", "", []),
}


def message(content, reasoning="", calls=()):
    found = {"role": "assistant", "content": content}
    found |= {"reasoning_content": reasoning} if reasoning else {}
    return found | ({"tool_calls": list(calls)} if calls else {})


def in_pieces(text, size, **options):
    parser = ReplyParser(**options)
    for i in range(0, len(text), size):
        parser.push(text[i : i + size])
    parser.finish()
    return parser.message()


def test_every_format_has_a_reply():
    assert sorted(REPLIES) == sorted(reply_formats())


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_in_any_pieces(name):
    text, *wanted = REPLIES[name]
    assert parse_reply(text, format=name) == message(*wanted)
    for size in (1, 2, 3, 7, 20):
        assert in_pieces(text, size, format=name) == message(*wanted), size


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_that_breaks_off_says_no_more_than_it_has(name):
    text, _, _, calls = REPLIES[name]
    for end in range(len(text)):
        found = parse_reply(text[:end], format=name)
        assert found.get("tool_calls", []) == calls[: len(found.get("tool_calls", []))]
        assert found.get("reasoning_content", "") in text


@given(st.sampled_from(sorted(REPLIES)), st.data())
def test_damaged_replies_are_read_alike_in_any_pieces(name, data):
    text = REPLIES[name][0]
    at = data.draw(st.integers(0, len(text)))
    damaged = text[:at] + data.draw(st.text(max_size=5)) + text[at + data.draw(st.integers(0, 5)) :]
    whole = parse_reply(damaged, format=name)
    assert in_pieces(damaged, data.draw(st.integers(1, 9)), format=name) == whole


@given(st.text(alphabet=st.characters(exclude_characters="<[]|{}`F]~", exclude_categories=["Cs"])))
def test_text_without_marks_is_content(text):
    for name in ("hermes", "qwen3-coder", "glm", "mistral", "deepseek-v3.1", "kimi-k2", "gemma-4", "text"):
        wanted = text.rstrip("\n") if name == "glm" and text.strip("\n") else text
        if name == "glm" and not text.strip("\n"):
            wanted = ""
        assert parse_reply(text, format=name)["content"] == wanted, name


MALFORMED = {
    "hermes": '<tool_call>\n{"name": "f", "arguments": {"a": }}\n</tool_call>',
    "qwen3-coder": "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\nx</function>\n</tool_call>",
    "glm": "<tool_call>f\n<arg_key>a</arg_key>\nx<arg_value>1</arg_value></tool_call>",
    "lfm2": "<|tool_call_start|>[f(1)]<|tool_call_end|>",
    "mistral": '[TOOL_CALLS]f[ARGS]{"a": 1',
    "llama-3": '{"name": "f", "age": 3}',
    "gemma-4": "<|tool_call>call:f{a:x}<tool_call|>",
    "deepseek-v3.1": deepseek(
        '<|tool_calls_begin|><|tool_call_begin|>f<|tool_sep|>{"a"}<|tool_call_end|><|tool_calls_end|>'
    ),
    "minimax-m3": minimax('@<tool_call>\n@<invoke name="f">@<a>x@</b>@</invoke>'),
    "gpt-oss": "<|channel|>commentary to=functions.f<|message|>{x}<|call|>",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_call_is_content_as_it_was_written(name):
    for text in (MALFORMED[name], f"Well.\n{MALFORMED[name]}"):
        if name in ("llama-3", "gpt-oss") and text.startswith("Well"):
            continue
        assert parse_reply(text, format=name) == message(text)
        assert in_pieces(text, 1, format=name) == message(text)


def test_a_name_comes_as_soon_as_it_is_known_and_arguments_as_they_are_written():
    parser = ReplyParser(format="hermes")
    assert parser.push('Hi\n<tool_call>{"name": "f", "arg') == [ReplyEvent("content", "Hi")]
    assert parser.push('uments": {"a": "b') == [
        ReplyEvent("tool_call_begin", "f"),
        ReplyEvent("tool_call_arguments", '{"a": "b'),
    ]
    assert parser.push('c"}}') == [ReplyEvent("tool_call_arguments", 'c"}')]
    assert parser.message() == message("Hi")
    assert parser.push("</tool_call>") == [ReplyEvent("tool_call_end")]
    assert parser.finish() == []
    assert parser.message() == message("Hi", "", [call("f", {"a": "bc"})])


def test_a_call_that_turns_out_malformed_is_discarded():
    parser = ReplyParser(format="hermes")
    parser.push('<tool_call>{"name": "f", "arguments": {"a": ')
    assert parser.push("?") == [
        ReplyEvent("tool_call_discarded"),
        ReplyEvent("content", '<tool_call>{"name": "f", "arguments": {"a": ?'),
    ]


def test_the_prompt_says_where_the_reply_begins():
    template = "{{ '<think>' }}{{ '</think>' }}"
    assert parse_reply("R\n</think>\n\nHi", template, "x\n<think>\n") == message("Hi", "R")
    assert parse_reply("Hi", template, "x\n<think>\n\n</think>\n\n") == message("Hi")
    assert parse_reply("Hi", template, "What is <think>?\nassistant: ") == message("Hi")
    assert parse_reply("Hi", template, "<think>" + "x" * 5000) == message("Hi")


def test_tools_tell_strings_from_numbers():
    parameters = {"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    values = "".join(f"<arg_key>{key}</arg_key><arg_value>12</arg_value>" for key in "ab")
    text = f"<tool_call>f{values}</tool_call>"
    assert parse_reply(text, format="glm") == message("", "", [call("f", {"a": 12, "b": 12})])
    assert parse_reply(text, format="glm", tools=tools) == message("", "", [call("f", {"a": "12", "b": 12})])


def test_numbers_and_keys_keep_what_they_are():
    written = '{"n": 123456789012345678901234567890, "\\u00e9": "\\ud83d\\ude00"}'
    text = f'<tool_call>{{"name": "f", "arguments": {written}}}</tool_call>'
    arguments = {"n": 123456789012345678901234567890, "\u00e9": "\U0001f600"}
    assert parse_reply(text, format="hermes") == message("", "", [call("f", arguments)])


def test_errors():
    with pytest.raises(ArgumentError, match='format = "qwen": must be one of gpt-oss, '):
        ReplyParser(format="qwen")
    parser = ReplyParser()
    assert parser.format == "text"
    with pytest.raises(ArgumentError, match="text must be a str, not bytes"):
        parser.push(b"x")
    parser.finish()
    with pytest.raises(ArgumentError, match="the reply is finished"):
        parser.push("x")
    with pytest.raises(ArgumentError, match="more than 16777216 bytes"):
        parse_reply("x" * (16 * 2**20 + 1))
    assert parse_reply("\ud800x") == message("?x")


def test_a_model_reads_its_replies(demo):
    ids = demo.apply_chat_template([{"role": "user", "content": "Hi"}], add_generation_prompt=True)
    for prompt in (ids, demo.detokenize(ids), ""):
        parser = demo.reply_parser(prompt)
        assert parser.format == "text"
        parser.push("Hello")
        assert parser.message() == message("Hello")
    assert demo.reply_parser(ids, format="hermes").format == "hermes"


def test_text_may_have_special_tokens_without_the_one_that_ends_it(demo):
    eos = demo.generation_config["eos_token_id"]
    options = {"do_sample": False, "max_new_tokens": 400, "skip_special_tokens": False}
    for prompt in ("def f(x):\n    return x\n", "import os\n"):
        shown = demo.generate(prompt, **options)
        text = shown.text()
        if shown.finish_reason != "eos":
            continue
        end = demo.detokenize([shown.token_ids[-1]])
        assert shown.token_ids[-1] in eos
        assert text.endswith(end)
        assert demo.generate(prompt, skip_eos=True, **options).text() == text.removesuffix(end)
        return
    pytest.skip("the model ended no text")
