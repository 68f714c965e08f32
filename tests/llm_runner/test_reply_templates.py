"""Replies are split into the messages that real chat templates write them from, however they are cut into pieces."""

from __future__ import annotations

import json
import random
from pathlib import Path

import jinja2
import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from llm_runner import ReplyParser
from tests.llm_runner.chat_conversations import EMPTY, SEARCH, UNICODE

ROOT = Path(__file__).parents[2]
SHARED = ROOT / ".." / "shared" / "data" / "chat-templates"
TEMPLATES = {path.stem: path for path in sorted(SHARED.glob("*.jinja"))} if SHARED.is_dir() else {}

# Where the assistant's part begins.
BEGINNINGS = [
    "<|im_start|>assistant\n",
    "<|im_assistant|>assistant<|im_middle|>",
    "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "<|start_of_role|>assistant<|end_of_role|>",
    "<|start|>assistant",
    "<|begin|>assistant",
    "<|begin_assistant|>\n",
    "<|assistant|>\n",
    "<|assistant|>",
    "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
    "<|turn>model\n",
    "<start_of_turn>model\n",
    "<seed:bos>assistant\n",
    "<beginning_of_sentence>ai name=assistant\n",
    "]~b]ai\n",
    "<|Bot|>",
    "<\uff5cAssistant\uff5c>",
    "<assistant>",
    "assistant<|role_sep|>\n",
    "[/INST]",
]
# What a generation ends before, or with.
ENDS = [
    "<|im_end|>\n",
    "<|im_end|>",
    "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>\n",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "\n<|end|>\n</s>",
    "<|end|>\n</s>",
    "<|end|>",
    "<|END_OF_TURN_TOKEN|>",
    "<turn|>\n",
    "<end_of_turn>\n",
    "<seed:eos>",
    "<end_of_sentence>\n",
    "[e~[\n",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
    "</assistant>\n",
    "<|message_sep|>\n\n",
    "</s>",
]
# What some templates write behind the end of a reply.
BEHIND = ["<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>Write 'Action:'", "<\uff5cend\u2581of\u2581sentence\uff5c>"]
QUESTION = "Where is QQQ?"
NESTED = {
    "city": 'Par"is',
    "days": 3,
    "height": 1.5,
    "exact": True,
    "never": False,
    "options": {"wind": [True, 2, {"deep": ["a", {"b": "c d"}]}], "text": "l1\nl2 \\ / 'x'"},
    "stations": ["A", "\u00dc \u4f60", "it's"],
}
CALLS = {
    "one": [("get_weather", {"city": "Paris"})],
    "two": [("get_weather", {"city": "Paris", "days": 3}), ("search", {"query": "a <b> & c"})],
    "none": [("now", {})],
    "nested": [("get_weather", NESTED)],
    "lines": [("write_file", {"path": "a.py", "text": "def f(x):\n    return {'a': [x]}\n\n\n# </end>\n"})],
    "unicode": [("search", {"query": UNICODE.strip(), "\u00e4": "\u4f60\u597d"})],
    "three": [("f.g-h_1", {"x": -1.5e10}), ("now", {}), ("search", {"query": '{"a": [1]} text, = () []'})],
}
TEXTS = {
    "plain": "The answer is 42.",
    "lines": "One:\n\n  - two  \n\n```py\n    x = {'a': [1]}\n```\nDone.",
    "marks": "a < b and <b>c</b>, [1] {x} <think <tool <| [TOOL $ ``` </ a|>",
    "unicode": UNICODE.strip(),
}
REASONING = {
    "short": "Let me see.",
    "long": "First,\n\n- a < b\n- {x: [1]}\n\nso <maybe> not.",
    "unicode": UNICODE.strip(),
}


def cases():
    """name -> (content, reasoning, calls)"""
    found = {}
    for name, text in TEXTS.items():
        found[f"content-{name}"] = (text, "", [])
    for name, text in REASONING.items():
        found[f"reasoning-{name}"] = ("The answer is 42.", text, [])
    for name, calls in CALLS.items():
        found[f"call-{name}"] = ("", "", calls)
    found["content-call"] = ("I will look.", "", CALLS["one"])
    found["content-calls"] = (TEXTS["lines"], "", CALLS["two"])
    found["reasoning-call"] = ("", REASONING["long"], CALLS["nested"])
    found["all"] = ("I will look.", "Let me see.", CALLS["two"])
    return found


CASES = cases()
# What a template says that it does not take.
REFUSED = ("single tool-calls at once", "Cannot pass both content and thinking")
# Templates that loop over changed lists, which the sandbox refuses.
UNSANDBOXED = ("Kimi-K2-Thinking",)


def as_message(content, reasoning, calls, template):
    message = {"role": "assistant", "content": content}
    if reasoning:
        message.update(reasoning_content=reasoning, reasoning=reasoning, thinking=reasoning)
    if reasoning and "block['type'] == 'thinking'" in template:
        message["content"] = [{"type": "thinking", "thinking": reasoning}, {"type": "text", "text": content}]
    as_text = "'\\n' + tool['function']['arguments'] + '\\n'" in template
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call{i:05d}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments) if as_text else arguments},
            }
            for i, (name, arguments) in enumerate(calls)
        ]
    if as_text and not content:
        message["content"] = None
    return message


def render(name, template, messages, **arguments):
    given = {"bos_token": "<s>", "eos_token": "</s>", "datetime": "1 Jan 2030", "functions": "[]"}
    given |= {"enable_thinking": True, "thinking": True, "tools": [SEARCH, EMPTY]} | arguments
    if name in UNSANDBOXED:
        environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        environment.filters["tojson"] = lambda value, **_: json.dumps(value, ensure_ascii=False)
        return environment.from_string(template).render(messages=messages, **given)
    tools = None if "map(attribute='function') | tojson" in template else given.pop("tools")
    given.pop("tools", None)
    return render_jinja_template([messages], tools=tools, chat_template=template, **given)[0][0]


def assistant_part(text):
    """Returns the prompt and the reply of a rendered conversation."""
    start = text.rindex("QQQ?")
    found = [(text.index(mark, start), -len(mark)) for mark in BEGINNINGS if mark in text[start:]]
    begin, negative_length = min(found)
    cut = begin - negative_length
    reply = text[cut:]
    for behind in BEHIND:
        reply = reply.partition(behind)[0]
    end = next((end for end in ENDS if reply.endswith(end)), "")
    return text[:cut], reply.removesuffix(end)


def pieces(text, how, seed=0):
    if how == "one":
        return [text]
    if how == "characters":
        return list(text)
    chooser = random.Random(f"{seed} {text}")
    cuts = sorted(chooser.sample(range(len(text) + 1), min(len(text), 8)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def split(parts, *arguments, **options):
    """Returns the message and what the events say it is."""
    parser = ReplyParser(*arguments, **options)
    events = [event for part in parts for event in parser.push(part)] + parser.finish()
    return parser.message(), from_events(events)


def from_events(events):
    message, calls = {"role": "assistant", "content": ""}, []
    for event in events:
        if event.kind == "content":
            message["content"] += event.text
        elif event.kind == "reasoning":
            message["reasoning_content"] = message.get("reasoning_content", "") + event.text
        elif event.kind == "tool_call_begin":
            assert event.index == len(calls)
            calls.append({"type": "function", "function": {"name": event.text, "arguments": ""}})
        elif event.kind == "tool_call_arguments":
            calls[event.index]["function"]["arguments"] += event.text
        elif event.kind == "tool_call_end":
            call = calls[event.index]
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
            call.update({"id": event.id} if event.id else {})
        else:
            assert event.kind == "tool_call_discarded"
            calls.pop()
    return message | ({"tool_calls": calls} if calls else {})


def without_ids(message):
    calls = [{key: value for key, value in call.items() if key != "id"} for call in message.get("tool_calls", [])]
    return {**message, "tool_calls": calls} if calls else message


def expected(content, reasoning, calls, reply, template):
    """Returns what the template wrote of a message."""
    wanted = {"role": "assistant", "content": content if content in reply else ""}
    if reasoning and reasoning in reply:
        wanted["reasoning_content"] = reasoning
    if "message.content and not future_final_message.found" in template and calls and content:
        wanted |= {"content": "", "reasoning_content": content}  # the analysis channel
    written = [call for call in calls if call[0] in reply]
    if written:
        wanted["tool_calls"] = [
            {"type": "function", "function": {"name": name, "arguments": arguments}} for name, arguments in written
        ]
    return wanted


def test_the_shared_templates_are_there():
    if not TEMPLATES:
        pytest.skip(f"{SHARED} is not there: formats are tested by strings in test_reply.py only")
    assert len(TEMPLATES) > 30


@pytest.mark.parametrize("name", TEMPLATES)
def test_splits_what_the_template_writes(name):
    template = TEMPLATES[name].read_text()
    num_written = 0
    for case, (content, reasoning, calls) in CASES.items():
        if "indent(8)" in template and case == "call-unicode":
            continue  # it breaks lines inside of strings at U+0085
        messages = [{"role": "user", "content": QUESTION}, as_message(content, reasoning, calls, template)]
        try:
            text = render(name, template, messages)
        except jinja2.TemplateError as error:
            assert any(refused in str(error) for refused in REFUSED), case
            continue
        prompts = [assistant_part(text)]
        for thinks in (True, False):
            prompt = render(
                name, template, messages[:1], add_generation_prompt=True, enable_thinking=thinks, thinking=thinks
            )
            whole = prompts[0][0] + prompts[0][1]
            if whole.startswith(prompt):
                prompts.append((prompt, whole[len(prompt) :]))
            elif reasoning and prompt.startswith(prompts[0][0]) and prompt.endswith("reasoning steps:\n"):
                prompts = [(prompt, prompts[0][1])]  # which is not in what it writes of past turns
        wanted = expected(content, reasoning, calls, prompts[0][1], template)
        for prompt, reply in prompts:
            for how in ("one", "characters", "random"):
                message, streamed = split(pieces(reply, how), template, prompt)
                assert without_ids(message) == wanted, (case, how, prompt[-40:], reply)
                assert streamed == message, (case, how)
        num_written += 1
    assert num_written >= 12
