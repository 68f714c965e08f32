"""What a request for a message may say, and the chat that it is."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from llm_server.chat.options import MAX_STOPS, PositiveCount, SamplingRequest
from llm_server.chat.requests import ChatRequest
from llm_server.web.bodies import Fields
from llm_server.web.errors import invalid


class Message(Fields):
    role: Literal["user", "assistant", "system"]
    content: str | list[dict[str, Any]]


class Tool(Fields):
    name: str
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    type: str | None = None
    strict: bool | None = None
    cache_control: Any = Field(None, description="changes nothing: what prompts share is found without it")
    eager_input_streaming: Any = Field(None, description="changes nothing: a call is sent when it is whole")


class ToolChoice(Fields):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None

    def without_effect(self) -> list[str]:
        # A call that must be made is made once; how many others there are is the model's choice.
        return ["disable_parallel_tool_use"] if self.disable_parallel_tool_use and self.type == "auto" else []


class Thinking(Fields):
    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: int | None = None
    display: str | None = None

    def without_effect(self) -> list[str]:
        return [name for name in ("budget_tokens", "display") if getattr(self, name) is not None]


class OutputConfig(Fields):
    format: dict[str, Any] | None = None
    effort: str | None = None


class CountTokensRequest(SamplingRequest):
    """What the prompt is made of."""

    model: str
    messages: Annotated[list[Message], Field(min_length=1)]
    system: str | list[dict[str, Any]] | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    thinking: Thinking | None = Field(None, description="sets the template's variable enable_thinking")
    output_config: OutputConfig | None = None
    chat_template_kwargs: dict[str, Any] | None = Field(None, description="variables of the template; not Anthropic's")
    cache_control: Any = Field(None, description="changes nothing: what prompts share is found without it")

    def chat(self, **options: Any) -> ChatRequest:
        """Returns the chat of a request. Errors: ApiError naming the field."""
        messages = [{"role": "system", "content": _text(self.system, "system")}] if self.system else []
        for i, message in enumerate(self.messages):
            messages += _messages(message, f"messages[{i}]")
        own = {name: getattr(self, name) for name in SamplingRequest.model_fields} | options
        config = self.output_config or OutputConfig()
        return ChatRequest.model_construct(
            **own, model=self.model, messages=messages, tools=self._tools(), tool_choice=self._tool_choice(),
            chat_template_kwargs=self._variables(), reasoning_effort=config.effort,
            response_format=_response_format(config.format),
            # The reply goes on with what the assistant has said.
            continue_final_message=self.messages[-1].role == "assistant",
        )  # fmt: skip

    def _tools(self) -> list[dict[str, Any]] | None:
        for i, tool in enumerate(self.tools or ()):
            if tool.type not in (None, "custom"):
                raise invalid(f"tools[{i}].type", f"{tool.type!r}: only tools of the client can be called (custom)")
        return [
            {"type": "function", "function": {
                "name": tool.name, "description": tool.description or "",
                "parameters": tool.input_schema or {"type": "object", "properties": {}},
            }}
            for tool in self.tools or ()
        ] or None  # fmt: skip

    def _tool_choice(self) -> Any:
        choice = self.tool_choice
        if choice is None:
            return None
        if choice.type == "tool":
            return {"type": "function", "function": {"name": choice.name}}
        return "required" if choice.type == "any" else choice.type

    def _variables(self) -> dict[str, Any] | None:
        if self.thinking is None or self.thinking.type == "adaptive":
            return self.chat_template_kwargs
        return {"enable_thinking": self.thinking.type == "enabled"} | (self.chat_template_kwargs or {})


class MessagesRequest(CountTokensRequest):
    max_tokens: PositiveCount
    stop_sequences: Annotated[list[str], Field(max_length=MAX_STOPS)] | None = None
    stream: bool | None = None
    metadata: Any = Field(None, description="changes nothing")
    service_tier: Any = Field(None, description="changes nothing")

    def chat(self, **options: Any) -> ChatRequest:
        if self.stop_sequences is not None and self.stop is not None:
            raise invalid("stop", "is another name of stop_sequences: only one of them can be given")
        stop = self.stop_sequences if self.stop_sequences is not None else self.stop
        return super().chat(max_completion_tokens=self.max_tokens, stop=stop, **options)


def _response_format(given: dict[str, Any] | None) -> dict[str, Any] | None:
    if given is None:
        return None
    return {"type": given.get("type"), "json_schema": {"name": "reply", "schema": given.get("schema")}}


def _messages(message: Message, path: str) -> list[dict[str, Any]]:
    """Returns the messages of the template that one of the request is: results of tools have their own."""
    if message.role != "user" or isinstance(message.content, str):
        return [_of_assistant(message, path) if message.role == "assistant" else _plain(message, path)]
    found: list[dict[str, Any]] = []
    text: list[dict[str, Any]] = []
    for i, block in enumerate(message.content):
        if block.get("type") == "tool_result":
            content = _text(block.get("content") or "", f"{path}.content[{i}].content")
            found.append({"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": content})
        else:
            text.append(block)
    if text or not found:
        found.append({"role": "user", "content": _text(text, f"{path}.content")})
    return found


def _plain(message: Message, path: str) -> dict[str, Any]:
    return {"role": message.role, "content": _text(message.content, f"{path}.content")}


def _of_assistant(message: Message, path: str) -> dict[str, Any]:
    if isinstance(message.content, str):
        return _plain(message, path)
    text, thinking, calls = "", "", []
    for i, block in enumerate(message.content):
        kind = block.get("type")
        if kind == "tool_use":
            function = {"name": block.get("name"), "arguments": json.dumps(block.get("input") or {})}
            calls.append({"id": block.get("id"), "type": "function", "function": function})
        elif kind == "thinking":
            thinking += str(block.get("thinking", ""))
        elif kind != "redacted_thinking":
            text += _text([block], f"{path}.content[{i}]")
    found: dict[str, Any] = {"role": "assistant", "content": text}
    found |= {"reasoning_content": thinking} if thinking else {}
    return found | ({"tool_calls": calls} if calls else {})


def _text(content: Any, path: str) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise invalid(path, "must be a string or a list of blocks")
    for i, block in enumerate(content):
        if not isinstance(block, dict) or block.get("type") != "text" or not isinstance(block.get("text"), str):
            kind = block.get("type") if isinstance(block, dict) else block
            raise invalid(f"{path}[{i}]", f"{str(kind)[:60]!r}: must be a block of type text")
    return "".join(block["text"] for block in content)
