"""Chats: replies become messages that the next prompt is rendered from, and the verb shows their parts."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from llm_export.chat import Chat
from llm_export.errors import ArgumentError
from llm_runner import Generation, Model, Session

DEMO = Path(__file__).parents[2] / "examples" / "demo"
MODULE = [sys.executable, "-m", "llm_export.cli"]
# Qwen's form, with all that a conversation may have.
TEMPLATE = (
    "{%- if tools %}{{- '<|im_start|>system\\n' + tools | tojson + '<|im_end|>\\n' }}{%- endif %}"
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.reasoning_content and loop.last %}"
    "{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{%- endif %}{{- message.content }}"
    "{%- for call in message.tool_calls or [] %}{{- '\\n<tool_call>\\n' + call.function | tojson + '\\n</tool_call>' }}"
    "{%- endfor %}{{- '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- if enable_thinking is not defined %}"
    "{{- '<think>\\n' }}{%- endif %}{%- endif %}"
)
STRICT = (
    "{%- for message in messages %}{%- if message.tool_calls and loop.nextitem and loop.nextitem.role != 'tool' %}"
    "{{- raise_exception('results first') }}{%- endif %}{%- endfor %}"
)
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "d", "parameters": {}}}]
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """template -> a file of the example with that template"""
    from llm_export.api import export
    from llm_export.program.reader import read_program
    from llm_export.program.writer import write_program

    folder = tmp_path_factory.mktemp("chat")
    export(str(DEMO), folder / "demo.mote", recipe="none")
    file = read_program(folder / "demo.mote")
    index = {spec.name: i for i, spec in enumerate(file.weights)}

    def make(template: str) -> Path:
        path = folder / f"{len(list(folder.iterdir()))}.mote"
        metadata = dataclasses.replace(file.metadata, chat_template=template.encode())
        write_program(path, file.planned, metadata, lambda spec: [file.weight_bytes(index[spec.name])])
        return path

    return {"plain": folder / "demo.mote", "thinking": make(TEMPLATE), "strict": make(STRICT + TEMPLATE)}


class Scripted(Session):
    """A session that says what it is told to."""

    def __init__(self, model, replies):
        super().__init__(model)
        self.model, self.replies, self.prompts, self.options, self.held = model, list(replies), [], [], []

    @property
    def tokens(self):
        return self.held

    def reset(self):
        self.held = []

    def rewind(self, position):
        del self.held[position:]

    def _start(self, ids, stop_strings, options, on_close=lambda: None):
        self.prompts.append(self.model.detokenize(ids))
        self.options.append(options)
        reply = self.replies.pop(0)
        self.held += ids + self.model.tokenize(reply, False)
        return Generation(ScriptedCore(reply))


class ScriptedCore:
    def __init__(self, reply):
        self._pieces = [reply[i : i + 3] for i in range(0, len(reply), 3)]

    def next(self):
        if not self._pieces:
            return "", 0, "eos", 0.0, []
        return self._pieces.pop(0), 1, None, 0.0, []

    def statistics(self):
        return {"prompt_tokens": 0, "generated_tokens": 0, "prefill_seconds": 0.0, "decode_seconds": 0.0}


def scripted(path, *replies, **options) -> Chat:
    model = Model.load(path)
    chat = Chat(model, **options)
    chat.session = Scripted(model, replies)
    return chat


def test_reasoning_and_calls_become_messages(paths):
    chat = scripted(paths["thinking"], f"I look.\n</think>\n\nWait.\n{CALL}", "</think>\n\nSunny.", "Yes", tools=TOOLS)
    events = list(chat.reply("Weather?"))
    assert "".join(event.text for event in events if event.kind == "reasoning") == "I look."
    arguments = {"name": "get_weather", "arguments": {"city": "Paris"}}
    call = {"type": "function", "id": "call00000", "function": arguments}
    assert chat.messages[-1] == {
        "role": "assistant", "content": "Wait.", "reasoning_content": "I look.", "tool_calls": [call],
    }  # fmt: skip
    assert chat.open_calls() == [call]
    list(chat.result("21 degrees"))
    assert chat.open_calls() == []
    assert chat.messages[-2] == {
        "role": "tool", "name": "get_weather", "tool_call_id": "call00000", "content": "21 degrees",
    }  # fmt: skip
    assert chat.messages[-1] == {"role": "assistant", "content": "Sunny."}
    list(chat.reply("Thanks"))
    prompt = chat.model.apply_chat_template(chat.messages[:-1], tools=TOOLS, add_generation_prompt=True, tokenize=False)
    assert f"<|im_start|>assistant\nWait.\n{CALL}<|im_end|>\n<|im_start|>tool\n21 degrees<|im_end|>\n" in prompt
    assert prompt.endswith(chat.session.prompts[-1])
    assert "get_weather" in chat.session.prompts[0]


def test_the_session_is_asked_for_marks_but_not_for_the_end_of_the_turn(paths):
    chat = scripted(paths["thinking"], "</think>\n\nHi", "Hi")
    list(chat.reply("Hello"))
    assert chat.session.options[-1] == {"skip_special_tokens": False, "skip_eos": True}
    plain = scripted(paths["plain"], "<think>Hi</think>")
    list(plain.reply("Hello"))
    assert plain.session.options[-1] == {"skip_special_tokens": True, "skip_eos": True}
    assert plain.messages[-1] == {"role": "assistant", "content": "<think>Hi</think>"}


def test_what_the_session_has_read_is_not_read_again(paths):
    chat = scripted(paths["plain"], "Hi", "Well")
    list(chat.reply("Hello"))
    list(chat.reply("And?"))
    assert chat.session.prompts[1] == "<|im_end|>\n<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\n"


def test_only_what_the_template_shows_otherwise_is_read_again(paths):
    chat = scripted(paths["thinking"], "I look.\n</think>\n\nWait.", "</think>\n\nx")
    list(chat.reply("Weather?"))
    list(chat.reply("And?"))
    again = chat.session.prompts[1]
    assert "Weather?" not in again
    assert again == "Wait.<|im_end|>\n<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\n<think>\n"


def test_a_conversation_goes_on_as_if_read_at_once(paths):
    options = {"do_sample": False, "max_new_tokens": 8, "ignore_eos": True}
    model = Model.load(paths["thinking"])
    chat = Chat(model, **options)
    list(chat.reply("def f("))
    before = chat.session.position
    list(chat.reply("import os"))
    anew = Chat(model, **options)
    anew.messages = chat.messages[:2]
    list(anew.reply("import os"))
    assert chat.messages == anew.messages
    assert chat.session.tokens == anew.session.tokens
    assert chat.session.position > before


def test_a_reply_that_is_broken_off_counts_as_far_as_it_came(paths):
    chat = scripted(paths["thinking"], f"No.\n</think>\n\nOne, two, {CALL}", "x")
    reply = chat.reply("Count")
    content = ""
    while "two" not in content:
        event = next(reply)
        content += event.text if event.kind == "content" else ""
    reply.close()
    assert chat.messages[-1]["role"] == "assistant"
    assert chat.messages[-1]["content"].startswith("One, two")
    assert "tool_calls" not in chat.messages[-1]
    unread = chat.reply("Again")
    assert len(chat.messages) == 2
    unread.close()


def test_calls_are_answered_in_order(paths):
    chat = scripted(paths["thinking"], f"</think>{CALL}\n{CALL}", "</think>Done.")
    list(chat.reply("Weather?"))
    assert [call["id"] for call in chat.open_calls()] == ["call00000", "call00001"]
    assert list(chat.result("one")) == []
    assert [call["id"] for call in chat.open_calls()] == ["call00001"]
    list(chat.result("two"))
    assert [message["role"] for message in chat.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    with pytest.raises(ArgumentError, match="no tool call waits"):
        chat.result("three")


def test_a_template_that_wants_a_result_first_ends_nothing(paths, capsys):
    from llm_export.commands.chat import _show

    chat = scripted(paths["strict"], f"</think>{CALL}", "</think>Sunny.")
    list(chat.reply("Weather?"))
    before = list(chat.messages)
    _show(chat, chat.reply("Well?"))
    shown = capsys.readouterr()
    assert "results first. /reset starts anew" in shown.err
    assert "get_weather waits for /result TEXT" in shown.err
    assert chat.messages == before
    _show(chat, chat.result("21 degrees"))
    assert capsys.readouterr().out == "Sunny.\n"


def run_verb(path, text, *options):
    command = [*MODULE, "chat", str(path), "--temperature", "0", "--max-new-tokens", "12", *map(str, options)]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=300, check=False)


def test_the_verb_chats_without_a_known_format(paths):
    done = run_verb(paths["plain"], "def f(\n/reset\ndef f(\n/nothing\n/result 1\n/exit\nnot read\n")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout[: len(done.stdout) // 2], done.stdout[len(done.stdout) // 2 :]
    assert first == second
    assert first.strip()
    assert "unknown command /nothing" in done.stderr
    assert "no tool call waits for a result" in done.stderr


def test_the_verb_shows_reasoning_beside_the_answer(paths, tmp_path):
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    done = run_verb(paths["thinking"], "def f(\n", "--tools", tmp_path / "tools.json")
    assert done.returncode == 0, done.stderr
    model = Model.load(paths["thinking"])
    ids = model.apply_chat_template(
        [{"role": "user", "content": "def f("}], tools=TOOLS, add_generation_prompt=True, eos_token="", bos_token=""
    )
    text = model.generate(ids, do_sample=False, max_new_tokens=12, skip_special_tokens=False, skip_eos=True).text()
    assert "</think>" not in text  # all of what the small model says is in the reasoning that the prompt began
    assert done.stderr.strip() == text.strip()
    assert done.stdout == "\n"


def test_the_verb_refuses_what_are_no_tools(paths, tmp_path):
    (tmp_path / "tools.json").write_text('{"name": "f"}')
    done = run_verb(paths["plain"], "", "--tools", tmp_path / "tools.json")
    assert done.returncode != 0
    assert "must be a JSON list of tool schemas" in " ".join(done.stderr.split())


def test_the_screen_shows_calls_on_lines_of_their_own(capsys):
    from llm_export.commands.chat import _show

    class Replies:
        def open_calls(self):
            return [{"function": {"name": "f"}}]

    from llm_runner import ReplyParser

    parser = ReplyParser(format="hermes")
    events = parser.push('<think>Hm.</think>Wait.\n<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>')
    _show(Replies(), iter(events + parser.push('<tool_call>{"name": "g", "arguments": {x') + parser.finish()))
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "Wait.",
        'f({"a": 1})',
        "g({ is no call:",
        "",
        '<tool_call>{"name": "g", "arguments": {x',
    ]
    assert shown.err == "Hm.\n\nf waits for /result TEXT\n"
