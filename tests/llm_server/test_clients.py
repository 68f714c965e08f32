"""The official clients of every API, and two libraries over them, each in a conversation with a tool."""

from __future__ import annotations

import json
import os

import pytest

from tests.llm_server.conftest import TEMPLATE, running
from tests.llm_server.script import force

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # litellm asks the network for prices unless told not to
os.environ.setdefault("LANGSMITH_TRACING", "false")

pytestmark = pytest.mark.xdist_group("clients")  # which import a lot

QUESTION = "What is the weather in Paris?"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"name": "get_weather", "description": "The weather of a city.", "parameters": CITY}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
TURNS = (f"I look.{CALL}", "Sunny.")


@pytest.fixture(scope="module")
def scripted(with_template):
    model = with_template(TEMPLATE)
    with running(model) as server:
        yield server, model


@pytest.fixture
def says(scripted, monkeypatch):
    """says(text): what the model replies from now on"""
    return lambda text: force(monkeypatch, scripted[1], text)


@pytest.fixture(scope="module")
def url(scripted):
    return scripted[0].url


def test_openai_chats(scripted, says):
    client = scripted[0].openai()
    messages = [{"role": "user", "content": QUESTION}]
    tools = [{"type": "function", "function": FUNCTION}]
    says(TURNS[0])
    message = client.chat.completions.create(model="demo", messages=messages, tools=tools).choices[0].message
    assert (message.content, message.tool_calls[0].function.name) == ("I look.", "get_weather")
    messages += [message, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "21"}]
    says(TURNS[1])
    assert client.chat.completions.create(model="demo", messages=messages).choices[0].message.content == "Sunny."


def test_openai_responses(scripted, says):
    client = scripted[0].openai()
    tools = [{"type": "function"} | FUNCTION]
    says(TURNS[0])
    first = client.responses.create(model="demo", instructions="Be short.", input=QUESTION, tools=tools)
    said, call = first.output
    assert (first.status, first.output_text, call.type, call.name) == (
        "completed", "I look.", "function_call", "get_weather",
    )  # fmt: skip
    assert json.loads(call.arguments) == {"city": "Paris"}
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "21"}
    says(TURNS[1])
    asked = {"model": "demo", "instructions": "Be short."}
    second = client.responses.create(**asked, previous_response_id=first.id, input=[result], tools=tools)
    assert second.output_text == "Sunny."
    items = [{"role": "user", "content": QUESTION}, said, call, result]
    again = client.responses.create(**asked, input=items, tools=tools, store=False)
    assert (again.output_text, again.usage.input_tokens) == ("Sunny.", second.usage.input_tokens)
    assert client.responses.retrieve(second.id).output_text == "Sunny."
    client.responses.delete(second.id)
    for gone in (second.id, again.id):
        with pytest.raises(Exception, match="is not kept"):
            client.responses.create(**asked, previous_response_id=gone, input="And?")


def test_openai_responses_as_events(scripted, says):
    client = scripted[0].openai()
    says(f"Hm.\n</think>\n\n{TURNS[0]}")
    tools = [{"type": "function"} | FUNCTION]
    extra = {"chat_template_kwargs": {"enable_thinking": True}}
    with client.responses.stream(model="demo", input=QUESTION, tools=tools, extra_body=extra) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    assert [event.item.type for event in events if event.type == "response.output_item.done"] == [
        "reasoning", "message", "function_call",
    ]  # fmt: skip
    assert [item.type for item in final.output] == ["reasoning", "message", "function_call"]
    assert (final.output[0].content[0].text, final.output_text) == ("Hm.", "I look.")
    assert final.usage.output_tokens_details.reasoning_tokens > 0
    cut = client.responses.create(model="demo", input=QUESTION, max_output_tokens=1)
    assert (cut.status, cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    text = {"format": {"type": "json_schema", "name": "x", "schema": {"const": 5}}}
    include = ["message.output_text.logprobs"]
    constrained = client.responses.create(model="demo", input=QUESTION, text=text, include=include, top_logprobs=2)
    part = constrained.output[0].content[0]
    assert (part.text, len(part.logprobs[0].top_logprobs)) == ("5", 2)


@pytest.fixture(scope="module")
def anthropic_client(url):
    import anthropic

    return anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)


def test_anthropic(anthropic_client, says):
    client = anthropic_client
    tools = [{"name": "get_weather", "description": FUNCTION["description"], "input_schema": CITY}]
    messages = [{"role": "user", "content": QUESTION}]
    asked = {"model": "demo", "max_tokens": 100, "system": "Be short.", "tools": tools}
    says(f"Hm.\n</think>\n\n{TURNS[0]}")
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    first = client.messages.create(**asked, messages=messages, **thinking)
    assert [block.type for block in first.content] == ["thinking", "text", "tool_use"]
    assert (first.content[0].thinking, first.content[1].text) == ("Hm.", "I look.")
    assert (first.content[2].input, first.stop_reason) == ({"city": "Paris"}, "tool_use")
    with client.messages.stream(**asked, messages=messages, **thinking) as stream:
        assert "".join(stream.text_stream) == "I look."
        streamed = stream.get_final_message()
    assert [block.type for block in streamed.content] == ["thinking", "text", "tool_use"]
    assert (streamed.content[2].input, streamed.stop_reason) == ({"city": "Paris"}, "tool_use")
    assert streamed.content[2].id != first.content[2].id
    messages += [
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": first.content[2].id, "content": "21"}]},
    ]
    says(TURNS[1])
    second = client.messages.create(**asked, messages=messages)
    assert (second.content[0].text, second.stop_reason) == ("Sunny.", "end_turn")
    counted = client.messages.count_tokens(
        model="demo", system="Be short.", tools=tools, messages=messages
    ).input_tokens
    assert counted == second.usage.input_tokens + second.usage.cache_read_input_tokens


def test_anthropic_s_ends_and_errors(anthropic_client, says):
    import anthropic

    client = anthropic_client
    asked = {"model": "demo", "max_tokens": 100, "messages": [{"role": "user", "content": QUESTION}]}
    says("One two three")
    stopped = client.messages.create(**asked, stop_sequences=["nine", "three"])
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", "three")
    assert stopped.content[0].text == "One two "
    assert client.messages.create(**asked | {"max_tokens": 1}).stop_reason == "max_tokens"
    begun = [*asked["messages"], {"role": "assistant", "content": "Well:"}]
    assert client.messages.create(**asked | {"messages": begun}).usage.input_tokens > 0
    with pytest.raises(anthropic.NotFoundError, match="'gpt' does not exist") as raised:
        client.messages.create(**asked | {"model": "gpt"})
    assert raised.value.body["error"]["type"] == "not_found_error"
    for change, text in [
        ({"extra_body": {"temperature": 3}}, "temperature"),
        ({"tool_choice": {"type": "any"}}, "needs tools"),
    ]:
        with pytest.raises(anthropic.BadRequestError, match=text):
            client.messages.create(**asked | change)


@pytest.fixture(scope="module")
def ollama_client(url):
    import ollama

    return ollama.Client(host=url)


def test_ollama_chats(ollama_client, says):
    client = ollama_client
    messages = [{"role": "user", "content": QUESTION}]
    tools = [{"type": "function", "function": FUNCTION}]
    says(f"Hm.\n</think>\n\n{TURNS[0]}")
    first = client.chat("demo:latest", messages=messages, tools=tools, think=True)
    assert (first.message.thinking, first.message.content, first.done_reason) == ("Hm.", "I look.", "stop")
    call = first.message.tool_calls[0]
    assert (call.function.name, call.function.arguments) == ("get_weather", {"city": "Paris"})
    parts = list(client.chat("demo", messages=messages, tools=tools, think=True, stream=True))
    assert "".join(part.message.content or "" for part in parts) == "I look."
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert (parts[-1].eval_count, parts[-1].prompt_eval_count) == (first.eval_count, first.prompt_eval_count)
    messages += [first.message, {"role": "tool", "tool_name": "get_weather", "content": "21"}]
    says(TURNS[1])
    assert client.chat("demo", messages=messages, tools=tools).message.content == "Sunny."


def test_ollama_s_other_calls(ollama_client, demo, url):
    import ollama

    client = ollama_client
    options = {"num_predict": 6, "temperature": 0, "repeat_penalty": 1.3, "repeat_last_n": 8}
    prompt = "def read_lines(path):\n"
    own = demo.generate(prompt, max_new_tokens=6, do_sample=False, repetition_penalty=1.3, repetition_window=8).text()
    whole = client.generate("demo", prompt, raw=True, options=options)
    assert (whole.response, whole.done_reason, whole.eval_count) == (own, "length", 6)
    assert (
        "".join(part.response for part in client.generate("demo", prompt, raw=True, options=options, stream=True))
        == own
    )
    assert client.generate("demo", "x", format={"enum": [3, 4]}).response in ("3", "4")
    assert client.chat("demo", [{"role": "user", "content": "x"}], format={"const": "a"}).message.content == '"a"'
    assert [model.model for model in client.list().models] == ["demo"]
    assert "tools" in client.show("demo").capabilities
    assert client.ps().models[0].context_length == 1024
    assert client.generate("demo", "").done_reason == "load"
    for call, text in [
        (lambda: client.show("gpt"), "does not exist"),
        (lambda: client.generate("demo", "x", options={"mirostat": 1}), "mirostat"),
    ]:
        with pytest.raises(ollama.ResponseError, match=text):
            call()


def test_litellm(url, says):
    import litellm

    asked = {"model": "openai/demo", "api_base": f"{url}/v1", "api_key": "none"}
    tools = [{"type": "function", "function": FUNCTION}]
    messages = [{"role": "user", "content": QUESTION}]
    says(TURNS[0])
    message = litellm.completion(**asked, messages=messages, tools=tools).choices[0].message
    assert (message.content, message.tool_calls[0].function.name) == ("I look.", "get_weather")
    messages += [message, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "21"}]
    says(TURNS[1])
    chunks = litellm.completion(**asked, messages=messages, tools=tools, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Sunny."


def test_langchain(url, says):
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="demo", base_url=f"{url}/v1", api_key="none", max_retries=0)
    with_tools = model.bind_tools([{"type": "function", "function": FUNCTION}])
    messages = [HumanMessage(QUESTION)]
    says(TURNS[0])
    first = with_tools.invoke(messages)
    call = first.tool_calls[0]
    assert (first.content, call["name"], call["args"]) == ("I look.", "get_weather", {"city": "Paris"})
    says(TURNS[1])
    chunks = with_tools.stream([*messages, first, ToolMessage("21", tool_call_id=call["id"])])
    assert "".join(chunk.content for chunk in chunks) == "Sunny."
