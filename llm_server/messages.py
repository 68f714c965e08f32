"""Messages and tools of a request, as chat templates take them."""

from __future__ import annotations

import json
from typing import Any

from llm_server.errors import ApiError, invalid
from llm_server.requests import ChatRequest

ROLES = ("system", "developer", "user", "assistant", "tool")


def template_messages(request: ChatRequest, chat_template: str) -> list[dict[str, Any]]:
    """Returns the messages with text as contents and objects as arguments. Errors: ApiError naming the field."""
    names: dict[str, str] = {}  # of tools, by the id of the call
    found = [_message(f"messages[{i}]", message, names) for i, message in enumerate(request.messages)]
    for message in found:
        if message["role"] == "developer" and "developer" not in chat_template:
            message["role"] = "system"
    return found


def offered_tools(request: ChatRequest) -> list[dict[str, Any]] | None:
    """Returns the tools that the model may call. Errors: ApiError naming the field."""
    if request.functions is not None or request.function_call is not None:
        raise invalid("functions", "was replaced by tools in OpenAI's API: give tools and tool_choice")
    tools = request.tools or []
    for i, tool in enumerate(tools):
        function = tool.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if tool.get("type") != "function" or not isinstance(name, str) or not name:
            raise invalid(f"tools[{i}]", 'must be {"type": "function", "function": {"name": ..., "parameters": ...}}')
        if not isinstance(function.get("parameters", {}), dict):
            raise invalid(f"tools[{i}].function.parameters", "must be a JSON schema, an object")
    return None if request.tool_choice == "none" else tools or None


def _message(path: str, message: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    role = message.get("role")
    if role not in ROLES:
        raise invalid(f"{path}.role", f"{json.dumps(role)[:60]} must be one of {', '.join(ROLES)}")
    found: dict[str, Any] = {"role": role, "content": _content(f"{path}.content", message.get("content"), role)}
    for name in ("name", "tool_call_id", "reasoning_content"):
        if message.get(name) is not None:
            found[name] = _text(f"{path}.{name}", message[name])
    if role == "assistant" and message.get("tool_calls"):
        calls = message["tool_calls"]
        if not isinstance(calls, list):
            raise invalid(f"{path}.tool_calls", "must be a list")
        found["tool_calls"] = [_call(f"{path}.tool_calls[{i}]", call, names) for i, call in enumerate(calls)]
    if role == "tool" and "name" not in found and found.get("tool_call_id") in names:
        found["name"] = names[found["tool_call_id"]]  # templates want it, OpenAI's messages have it only in the call
    return found


def _content(path: str, content: Any, role: str) -> str:
    if content is None and role == "assistant":
        return ""
    if isinstance(content, list):
        return "".join(_part(f"{path}[{i}]", part) for i, part in enumerate(content))
    return _text(path, content)


def _part(path: str, part: Any) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text":
        return _text(f"{path}.text", part.get("text"))
    if kind == "refusal":
        return _text(f"{path}.refusal", part.get("refusal"))
    raise invalid(f"{path}.type", f"{json.dumps(kind)[:60]} must be text: this model reads text only")


def _call(path: str, call: Any, names: dict[str, str]) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise invalid(path, 'must be {"id": ..., "type": "function", "function": {"name": ..., "arguments": ...}}')
    name = _text(f"{path}.function.name", function.get("name"))
    found: dict[str, Any] = {"type": "function", "function": {"name": name, "arguments": _arguments(path, function)}}
    if call.get("id") is not None:
        found["id"] = _text(f"{path}.id", call["id"])
        names[found["id"]] = name
    return found


def _arguments(path: str, function: dict[str, Any]) -> dict[str, Any]:
    """Returns the object that OpenAI's messages spell as a string."""
    arguments = function.get("arguments")
    try:
        arguments = json.loads(arguments or "{}") if isinstance(arguments, (str, type(None))) else arguments
    except (ValueError, RecursionError):
        raise invalid(f"{path}.function.arguments", "must be the JSON of an object") from None
    if not isinstance(arguments, dict):
        raise invalid(f"{path}.function.arguments", "must be the JSON of an object")
    return arguments


def _text(path: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ApiError(400, f"{path} = {json.dumps(value)[:60]}: must be a string", path)
    return value
