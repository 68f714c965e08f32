"""Chat with a file: prompts and ids as transformers has them, and special tokens that users type."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from llm_runner import ArgumentError, TemplateError
from mote.commands import runner_binary

DEMO = Path(__file__).parents[2] / "examples" / "demo"

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello na\u00efve \u4f60\u597d,  world!\n"},
    {"role": "assistant", "content": "Hi."},
    {"role": "user", "content": "And?"},
]


@pytest.fixture(scope="module")
def oracle():
    return AutoTokenizer.from_pretrained(DEMO)


@pytest.mark.parametrize("add_generation_prompt", [False, True])
@pytest.mark.parametrize("count", range(1, len(MESSAGES) + 1))
def test_prompts_and_ids_are_those_of_transformers(demo, oracle, count, add_generation_prompt):
    given = {"add_generation_prompt": add_generation_prompt}
    text = oracle.apply_chat_template(MESSAGES[:count], tokenize=False, **given)
    assert demo.apply_chat_template(MESSAGES[:count], tokenize=False, **given) == text
    ids = oracle(text, add_special_tokens=False)["input_ids"]
    assert demo.apply_chat_template(MESSAGES[:count], **given) == ids


def test_another_template_and_variables(demo):
    given = {"chat_template": "{{ tools[0].name }}{{ x }}{{ messages[0].content }}", "tools": [{"name": "t"}], "x": 5}
    assert demo.apply_chat_template([{"role": "user", "content": "c"}], tokenize=False, **given) == "t5c"


def test_the_final_message_is_continued(demo, oracle):
    messages = [*MESSAGES, {"role": "assistant", "content": "One, two"}]
    given = {"continue_final_message": True, "tokenize": False}
    assert demo.apply_chat_template(messages, **given) == oracle.apply_chat_template(messages, **given)


def test_special_tokens_that_users_type_are_text(demo, oracle):
    specials = sorted({token.content for token in oracle.added_tokens_decoder.values() if token.special})
    assert specials
    for special in specials:
        special_id = oracle.convert_tokens_to_ids(special)
        plain = demo.apply_chat_template([{"role": "user", "content": "ab"}])
        for content in (special, f"a{special}b", f"{special}{special}", special[:-1], f"<{special}"):
            messages = [{"role": "user", "content": content}]
            ids = demo.apply_chat_template(messages)
            assert ids.count(special_id) == plain.count(special_id), content
            assert demo.decode(ids) == demo.apply_chat_template(messages, tokenize=False)


def test_errors(demo):
    with pytest.raises(TemplateError, match="no thanks"):
        demo.apply_chat_template([], chat_template="{{ raise_exception('no thanks') }}")
    with pytest.raises(TemplateError, match="^Chat messages should be dicts"):
        demo.apply_chat_template(["hello"])
    with pytest.raises(ArgumentError, match="must be a string"):
        demo.apply_chat_template([{1: 2}])
    with pytest.raises(ArgumentError, match="must be finite"):
        demo.apply_chat_template([{"role": "user", "content": float("nan")}])


def render(path, folder, *flags):
    messages = folder / "messages.json"
    messages.write_text(json.dumps(MESSAGES))
    command = [runner_binary(), "render", str(path), str(messages), *flags]
    return subprocess.run(command, capture_output=True, check=False)


def test_render_prints_the_exact_prompt_and_its_ids(demo, demo_path, tmp_path):
    text = demo.apply_chat_template(MESSAGES, add_generation_prompt=True, tokenize=False)
    assert render(demo_path, tmp_path).stdout.decode() == text
    ids = demo.apply_chat_template(MESSAGES, add_generation_prompt=True)
    assert render(demo_path, tmp_path, "--ids").stdout.split() == [str(i).encode() for i in ids]
    shown = json.loads(render(demo_path, tmp_path, "--ids", "--json").stdout)
    assert shown == {"text": text, "ids": ids}
    without = demo.apply_chat_template(MESSAGES, tokenize=False)
    assert render(demo_path, tmp_path, "--no-generation-prompt").stdout.decode() == without


def test_render_refuses_what_is_no_conversation(demo_path, tmp_path):
    (tmp_path / "bad.json").write_text('{"role": "user"}')
    refused = subprocess.run(
        [runner_binary(), "render", str(demo_path), str(tmp_path / "bad.json")], capture_output=True, check=False
    )
    assert refused.returncode == 2
    assert b"messages: must be a JSON list of objects" in refused.stderr


QUESTION = [{"role": "user", "content": "What is a list?"}]
LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "parameters": {
            "type": "object",
            "properties": {"where": {"enum": ["left", "right"]}},
            "required": ["where"],
            "additionalProperties": False,
        },
    },
}


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "look"}}])
def test_a_tool_that_must_be_called_is_called(demo, choice):
    reply = demo.chat(QUESTION, tools=[LOOK], tool_choice=choice, temperature=2.0, seed=3)
    kinds = [event.kind for event in reply]
    assert kinds[0] == "tool_call_begin" and kinds[-1] == "tool_call_end"
    (call,) = reply.message["tool_calls"]
    assert call["function"]["name"] == "look"
    assert call["function"]["arguments"]["where"] in ("left", "right")
    assert call["id"] == "call00000"


@pytest.mark.parametrize("tools", [1, 2])
def test_a_tool_may_refer_to_its_own_definitions(demo, tools):
    def record(**properties):
        required = list(properties)
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    place = record(**{"$ref": {"enum": ["left", "right"]}})
    parameters = {**record(default={"$ref": "#/$defs/Place"}), "$defs": {"Place": place}}
    walk = {"type": "function", "function": {"name": "walk", "parameters": parameters}}
    reply = demo.chat(QUESTION, tools=[walk, LOOK][:tools], tool_choice="required", temperature=2.0, seed=8)
    (call,) = reply.run()["tool_calls"]
    if call["function"]["name"] == "walk":
        assert call["function"]["arguments"]["default"]["$ref"] in ("left", "right")
    choice = {"type": "function", "function": {"name": "walk"}}
    named = demo.chat(QUESTION, tools=[LOOK, walk], tool_choice=choice, seed=1)
    assert named.run()["tool_calls"][0]["function"]["name"] == "walk"


def test_a_response_format_holds(demo):
    schema = {"type": "json_schema", "json_schema": {"schema": {"enum": ["yes", "no"]}}}
    message = demo.chat(QUESTION, response_format=schema, temperature=2.0, seed=1).run()
    assert message["content"] in ('"yes"', '"no"')
    with pytest.raises(ArgumentError, match='response_format.type = "xml"'):
        demo.chat(QUESTION, response_format={"type": "xml"})
    with pytest.raises(ArgumentError, match="response_format: cannot be met"):
        demo.chat(QUESTION, response_format=schema, regex="a")


def test_sessions_of_a_batch_reply_as_they_would_alone(demo):
    questions = ["What is a list?", "And a set?", "Thanks", "Hello"]
    alone = [demo.chat([{"role": "user", "content": q}], max_new_tokens=24, seed=5).run() for q in questions]
    with demo.batch(len(questions)) as batch, ThreadPoolExecutor(len(questions)) as pool:

        def ask(question):
            with demo.session(threads=1) as session:
                session.set_batch(batch)
                first = session.chat([{"role": "user", "content": question}], max_new_tokens=24, seed=5).run()
                session.set_batch(None)
                ids = session.tokens
                assert session.generate(max_new_tokens=2, do_sample=False).text() is not None
                assert session.tokens[: len(ids)] == ids
                return first

        assert list(pool.map(ask, questions)) == alone


def test_a_reply_that_is_closed_keeps_what_was_written(demo):
    with demo.session() as session:
        reply = session.chat(QUESTION, max_new_tokens=24, do_sample=False)
        events = [next(reply) for _ in range(3)]
        reply.close()
        assert reply.message["content"].startswith("".join(event.text for event in events))
        assert reply.step() is None
        assert session.chat(QUESTION, max_new_tokens=6, do_sample=False).run() == (
            demo.chat(QUESTION, max_new_tokens=6, do_sample=False).run()
        )


def test_a_function_whose_docstring_lacks_arguments_is_refused_by_name(demo):
    def get_weather(city: str):
        """Gets the weather."""

    with pytest.raises(ArgumentError, match="tools: get_weather: "):
        demo.chat(QUESTION, tools=[get_weather])
