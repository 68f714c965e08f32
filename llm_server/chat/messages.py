"""What OpenAI's API says of messages and tools, checked before a chat template sees them."""

from __future__ import annotations

import json
from typing import Any

from llm_server.chat.requests import ChatRequest
from llm_server.web.errors import ApiError, invalid

ROLES = ("system", "developer", "user", "assistant", "tool")


def checked_messages(request: ChatRequest) -> list[dict[str, Any]]:
    """Returns the messages. Errors: ApiError naming the field."""
    for i, message in enumerate(request.messages):
        path, role, content = f"messages[{i}]", message.get("role"), message.get("content")
        if role not in ROLES:
            raise invalid(f"{path}.role", f"{json.dumps(role)[:60]} must be one of {', '.join(ROLES)}")
        if not isinstance(content, list) and not (content is None and role == "assistant"):
            _check_text(f"{path}.content", content)
        for name in ("name", "tool_call_id", "reasoning_content"):
            if message.get(name) is not None:
                _check_text(f"{path}.{name}", message[name])
        if not isinstance(message.get("tool_calls") or [], list):
            raise invalid(f"{path}.tool_calls", "must be a list")
    return request.messages


def checked_tools(request: ChatRequest) -> list[dict[str, Any]] | None:
    """Returns the tools. Errors: ApiError naming the field."""
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
    return tools or None


def _check_text(path: str, value: Any) -> None:
    if not isinstance(value, str):
        raise ApiError(400, f"{path} = {json.dumps(value)[:60]}: must be a string", path)
