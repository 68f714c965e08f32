"""Conversations for chat templates, with the arguments they are rendered with."""

from __future__ import annotations

import copy
from typing import Any

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": 'Current weather for a "city" <now>.',
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Name of the city"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
                "days": {"type": "integer", "minimum": 1, "nullable": True},
                "options": {
                    "type": "object",
                    "properties": {"wind": {"type": "boolean"}, "height": {"type": "number", "default": 1.5}},
                    "required": ["wind"],
                },
                "stations": {"type": "array", "items": {"type": "string"}, "description": "which stations"},
            },
            "required": ["city"],
        },
        "return": {"type": "object", "description": "The weather."},
    },
}
SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Sucht im Netz \u2013 \u00fcberall.",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string", "description": "q"}},
            "required": ["query"],
        },
    },
}
EMPTY = {
    "type": "function",
    "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}},
}
DOCUMENTS = [{"title": "One", "text": "First <doc>."}, {"title": "Two", "text": "Second\ndocument."}]
UNICODE = (
    "\u4f60\u597d \U0001f468\u200d\U0001f469\u200d\U0001f467 na\u00efve \u0130stanbul "
    "\u00df \u05e9\u05dc\u05d5\u05dd \ufb01 \x85 end\u2028"
)


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def system(content: Any) -> dict[str, Any]:
    return {"role": "system", "content": content}


def call(name: str, arguments: Any, call_id: str = "call12345") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(content: Any, name: str = "get_weather", call_id: str = "call12345") -> dict[str, Any]:
    return {"role": "tool", "name": name, "tool_call_id": call_id, "content": content}


PARIS = {"city": "Paris", "days": 3, "options": {"wind": True, "height": 1.5}, "note": None}

CONVERSATIONS: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "one": ([user("Hello")], {}),
    "system": ([system("Be brief."), user("Hello")], {}),
    "multi_turn": ([user("Hi"), assistant("Hello!"), user("How are you?")], {}),
    "multi_turn_system": ([system("S"), user("a"), assistant("b"), user("c"), assistant("d"), user("e")], {}),
    "ends_with_assistant": ([user("Hi"), assistant("Hello!")], {}),
    "developer": ([{"role": "developer", "content": "Rules."}, user("Hello")], {}),
    "two_systems": ([system("A"), system("B"), user("Hello")], {}),
    "late_system": ([user("Hello"), system("late"), user("again")], {}),
    "two_users": ([user("a"), user("b")], {}),
    "starts_with_assistant": ([assistant("I begin"), user("ok")], {}),
    "empty_conversation": ([], {}),
    "unknown_role": ([user("a"), {"role": "critic", "content": "no"}], {}),
    "empty_content": ([system(""), user(""), assistant(""), user(" ")], {}),
    "none_content": ([user("a"), assistant(None), user("b")], {}),
    "missing_content": ([user("a"), {"role": "assistant"}, user("b")], {}),
    "white_space": ([system("  s \n"), user("\n\n a \t"), assistant("  b  \n"), user(" c\u00a0\u3000")], {}),
    "unicode": ([system(UNICODE), user(UNICODE), assistant(UNICODE), user("\u00e9")], {}),
    "quotes": ([user('it\'s "quoted" \\ and \\n {{ x }} {% if %} <b>&amp;</b>'), assistant("'"), user('"')], {}),
    "long": ([user("word " * 3000), assistant("reply\n" * 500), user("?")], {}),
    "parts": ([user([{"type": "text", "text": "Look"}, {"type": "text", "text": " here"}])], {}),
    "parts_system": (
        [
            system([{"type": "text", "text": "S"}]),
            user([{"type": "text", "text": "u"}]),
            assistant([{"type": "text", "text": "a"}]),
        ],
        {},
    ),
    "image": ([user([{"type": "image"}, {"type": "text", "text": "What is it?"}])], {}),
    "tools": ([user("Weather in Paris?")], {"tools": [WEATHER]}),
    "tools_system": ([system("Be brief."), user("Weather?")], {"tools": [WEATHER, SEARCH, EMPTY]}),
    "tools_empty": ([user("Weather?")], {"tools": []}),
    "tool_call": (
        [
            user("Weather?"),
            assistant("", tool_calls=[call("get_weather", PARIS)]),
            result("sunny"),
            assistant("Sunny."),
        ],
        {"tools": [WEATHER]},
    ),
    "tool_call_pending": (
        [
            user("Weather?"),
            assistant(None, tool_calls=[call("get_weather", PARIS)]),
            result('{"sky": "sunny", "t": 21.5}'),
        ],
        {"tools": [WEATHER, SEARCH]},
    ),
    "tool_call_text_arguments": (
        [
            user("Weather?"),
            assistant("Let me see.", tool_calls=[call("get_weather", '{"city": "Paris"}')]),
            result("sunny"),
        ],
        {"tools": [WEATHER]},
    ),
    "tool_calls_parallel": (
        [
            system("S"),
            user("Weather?"),
            assistant(
                "",
                tool_calls=[
                    call("get_weather", PARIS, "call00001"),
                    call("search", {"query": "\u00e9 <x>"}, "call00002"),
                ],
            ),
            result("sunny", "get_weather", "call00001"),
            result("nothing", "search", "call00002"),
            assistant("Sunny."),
            user("Thanks"),
        ],
        {"tools": [WEATHER, SEARCH]},
    ),
    "tool_calls_no_tools": (
        [user("Weather?"), assistant("", tool_calls=[call("now", {})]), result("12:00", "now"), user("ok")],
        {},
    ),
    "tool_call_bare": (
        [
            user("q"),
            assistant("", tool_calls=[{"name": "now", "arguments": {"a": [1, 2.5, True, None]}}]),
            result("r", "now"),
        ],
        {"tools": [EMPTY]},
    ),
    "tool_result_parts": (
        [user("q"), assistant("", tool_calls=[call("now", {})]), result([{"type": "text", "text": "12"}], "now")],
        {"tools": [EMPTY]},
    ),
    "tool_result_object": (
        [user("q"), assistant("", tool_calls=[call("now", {})]), result({"h": 12}, "now")],
        {"tools": [EMPTY]},
    ),
    "thinking_on": ([user("2+2?")], {"enable_thinking": True}),
    "thinking_off": ([system("S"), user("2+2?")], {"enable_thinking": False}),
    "thinking_variants": (
        [user("2+2?")],
        {
            "thinking": True,
            "reasoning_effort": "high",
            "thinking_mode": "enabled",
            "reasoning": True,
            "preserve_thinking": True,
        },
    ),
    "thinking_in_content": (
        [user("2+2?"), assistant("<think>\nadd\n</think>\n\n4"), user("3+3?"), assistant("<think>again</think>6")],
        {},
    ),
    "reasoning_content": (
        [
            user("2+2?"),
            assistant("4", reasoning_content="add them"),
            user("3+3?"),
            assistant("6", reasoning_content="\n add\n "),
        ],
        {"enable_thinking": True},
    ),
    "reasoning_and_call": (
        [
            user("Weather?"),
            assistant("Wait.", reasoning="I should look.", tool_calls=[call("get_weather", PARIS)]),
            result("sunny"),
            assistant("Sunny.", thinking="done"),
            user("Thanks"),
        ],
        {"tools": [WEATHER], "enable_thinking": True},
    ),
    "documents": ([user("Summarize.")], {"documents": DOCUMENTS}),
    "special_tokens": (
        [user("Hello")],
        {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": ""},
    ),
    "variables": (
        [system("S"), user("Hello")],
        {
            "date_string": "1 Jan 2030",
            "model_identity": "You are Mote.",
            "builtin_tools": ["browser", "python"],
            "custom_tools": None,
            "xml_tools": [],
            "controls": {"length": "long"},
            "available_modes": ["a"],
            "tools_in_user_message": False,
        },
    ),
    "builtin_tools_call": (
        [user("Run"), assistant("", tool_calls=[call("python", {"code": "1+1"})]), {"role": "ipython", "content": "2"}],
        {"builtin_tools": ["python", "code_interpreter"], "tools": [SEARCH], "date_string": "1 Jan 2030"},
    ),
    "continue": ([user("Count."), assistant("One, two,")], {"continue_final_message": True}),
    "continue_spaces": ([user("Count."), assistant("  One, two,  ")], {"continue_final_message": True}),
    "continue_parts": ([user("q"), assistant([{"type": "text", "text": "One"}])], {"continue_final_message": True}),
    "continue_reasoning": (
        [user("q"), assistant("", reasoning_content="Let me")],
        {"continue_final_message": "reasoning_content"},
    ),
    "continue_nothing": ([user("q"), {"role": "assistant"}], {"continue_final_message": True}),
    "continue_user": ([user("Once upon")], {"continue_final_message": True}),
}


# What tokenizers and applications usually pass.
USUAL = {"bos_token": "<s>", "eos_token": "</s>", "datetime": "1 Jan 2030"}


# What some templates cannot do without, by a part of their name.
NEEDED = {"tool_use": {"tools": [SEARCH]}, "firefunction": {"functions": "[]"}}


def conversation(name: str, template_name: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Returns a fresh copy; all but those that pass none have the usual variables too."""
    messages, arguments = CONVERSATIONS[name]
    usual = {} if name in ("one", "multi_turn_system") else dict(USUAL)
    for part, needed in NEEDED.items():
        usual.update(needed if part in template_name and name not in ("empty_content", "two_users") else {})
    return copy.deepcopy(messages), copy.deepcopy({**usual, **arguments})
