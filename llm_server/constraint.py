"""Replies that must be JSON of a schema: response_format, and tools that must be called."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llm_runner import ArgumentError, Grammar
from llm_server.errors import invalid
from llm_server.requests import ChatRequest

MakeGrammar = Callable[[str], Grammar]  # of the text of a schema


@dataclass(frozen=True)
class Constraint:
    """is_call: the text is {"name": .., "arguments": ..}, which becomes a call of that tool"""

    grammar: Grammar
    is_call: bool = False


def constraint_of(asked: ChatRequest, make_grammar: MakeGrammar) -> Constraint | None:
    """Returns what a reply must be, if it must. Errors: ApiError naming the field."""
    tools = _tools_to_call(asked)
    wanted = asked.response_format
    if wanted is None or wanted.type == "text":
        return None if tools is None else Constraint(_compile(make_grammar, _call_schema(tools), "tools"), is_call=True)
    if tools is not None:
        raise invalid("response_format", "cannot be met by a reply that must call a tool: leave it or tool_choice out")
    if wanted.type == "json_object":
        return Constraint(_compile(make_grammar, {"type": "object"}, "response_format"))
    if wanted.json_schema is None:
        raise invalid("response_format.json_schema", "is required", "missing_required_parameter")
    return Constraint(_compile(make_grammar, wanted.json_schema.schema_, "response_format.json_schema.schema"))


def _tools_to_call(asked: ChatRequest) -> list[dict[str, Any]] | None:
    """Returns the tools of which the reply must call one; None if it need not."""
    choice = asked.tool_choice
    tools = [tool["function"] for tool in asked.tools or []]
    if choice in (None, "auto", "none"):
        return None
    if choice == "required":
        if not tools:
            raise invalid("tool_choice", "required needs tools")
        return tools
    function = choice.get("function") if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if name is None:
        accepted = 'auto, none, required or {"type": "function", "function": {"name": ...}}'
        raise invalid("tool_choice", f"{json.dumps(choice)[:60]} must be {accepted}")
    named = [tool for tool in tools if tool["name"] == name]
    if not named:
        raise invalid("tool_choice", f"{json.dumps(name)[:60]} is not one of the tools")
    return named


def _call_schema(tools: list[dict[str, Any]]) -> dict[str, Any]:
    calls = []
    for tool in tools:
        parameters = dict(tool.get("parameters") or {"type": "object"})
        calls.append(
            {
                "type": "object",
                "properties": {"name": {"const": tool["name"]}, "arguments": parameters},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
        )
    return calls[0] if len(calls) == 1 else {"anyOf": calls}


def _compile(make_grammar: MakeGrammar, schema: dict[str, Any], field: str) -> Grammar:
    try:
        return make_grammar(json.dumps(schema))
    except ArgumentError as error:
        raise invalid(field, str(error)) from None
