"""What a request for a response may say, and the chat that it is."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from llm_server.chat.options import PositiveCount, SamplingRequest
from llm_server.chat.requests import ChatRequest
from llm_server.web.bodies import Fields
from llm_server.web.errors import invalid

LOGPROBS = "message.output_text.logprobs"
TEXT_PARTS = ("input_text", "output_text", "text")


class TextOptions(Fields):
    format: dict[str, Any] | None = None
    verbosity: str | None = None

    def without_effect(self) -> list[str]:
        return ["verbosity"] if self.verbosity not in (None, "medium") else []


class ReasoningOptions(Fields):
    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None

    def without_effect(self) -> list[str]:
        return [name for name in ("summary", "generate_summary") if getattr(self, name) not in (None, "none", "auto")]


class ResponseStreamOptions(Fields):
    include_obfuscation: bool | None = None


class ResponsesRequest(SamplingRequest):
    model: str | None = Field(None, description="absent: the first of the server")
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    previous_response_id: str | None = Field(None, description="of an answer that is still kept")
    store: bool | None = Field(None, description="absent: true")
    tools: list[dict[str, Any]] | None = Field(None, description="of type function")
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: PositiveCount | None = None
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    include: list[str] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    truncation: str | None = None
    stream: bool | None = None
    stream_options: ResponseStreamOptions | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    background: bool | None = Field(None, description="true is refused")
    conversation: Any = Field(None, description="refused: use previous_response_id")
    prompt: Any = Field(None, description="refused: there are no stored prompts")
    max_tool_calls: Any = Field(None, description="changes nothing: no tool is called here")
    user: Any = Field(None, description="changes nothing")
    metadata: dict[str, str] | None = Field(None, description="comes back in the answer")
    safety_identifier: Any = Field(None, description="changes nothing")
    prompt_cache_key: Any = Field(None, description="changes nothing")
    prompt_cache_retention: Any = Field(None, description="changes nothing")
    service_tier: Any = Field(None, description="changes nothing")

    def without_effect(self) -> list[str]:
        found = [f"include[{i}]" for i, name in enumerate(self.include or ()) if name != LOGPROBS]
        if self.truncation not in (None, "disabled"):
            found.append("truncation")
        if self.parallel_tool_calls is False and self.tools and self.tool_choice in (None, "auto"):
            found.append("parallel_tool_calls")
        return found

    @property
    def wants_logprobs(self) -> bool:
        return LOGPROBS in (self.include or ())

    def new_messages(self) -> list[dict[str, Any]]:
        """Returns the input as messages. Errors: ApiError naming the item."""
        if isinstance(self.input, str):
            return [{"role": "user", "content": self.input}]
        messages: list[dict[str, Any]] = []
        for i, item in enumerate(self.input):
            _append(messages, item, f"input[{i}]")
        if not messages:
            raise invalid("input", "has no items: at least one is needed")
        return messages

    def chat(self, earlier: list[dict[str, Any]]) -> ChatRequest:
        """Returns the chat of a request. earlier: messages that come before. Errors: ApiError naming the field."""
        for name in ("background", "conversation", "prompt"):
            if getattr(self, name):
                raise invalid(name, "is not supported: send the input, and previous_response_id of the answer before")
        system = [{"role": "system", "content": self.instructions}] if self.instructions else []
        own = {name: getattr(self, name) for name in SamplingRequest.model_fields}
        return ChatRequest.model_construct(
            **own, model=self.model, messages=[*system, *earlier, *self.new_messages()], tools=self._tools(),
            tool_choice=_choice(self.tool_choice), max_completion_tokens=self.max_output_tokens,
            response_format=self._response_format(), chat_template_kwargs=self.chat_template_kwargs,
            reasoning_effort=self.reasoning.effort if self.reasoning is not None else None,
            logprobs=self.wants_logprobs, top_logprobs=self.top_logprobs if self.wants_logprobs else None,
        )  # fmt: skip

    def _tools(self) -> list[dict[str, Any]] | None:
        for i, tool in enumerate(self.tools or ()):
            if tool.get("type") != "function":
                raise invalid(f"tools[{i}].type", f"{tool.get('type')!r}: only functions of the client can be called")
        return [
            {"type": "function", "function": {name: value for name, value in tool.items() if name != "type"}}
            for tool in self.tools or ()
        ] or None

    def _response_format(self) -> dict[str, Any] | None:
        given = self.text.format if self.text is not None else None
        if given is None or given.get("type") != "json_schema" or "json_schema" in given:
            return given
        return {"type": "json_schema", "json_schema": {name: value for name, value in given.items() if name != "type"}}


def _choice(choice: Any) -> Any:
    """Chats have the name of a function one level deeper."""
    if isinstance(choice, dict) and choice.get("type") == "function" and "function" not in choice:
        return {"type": "function", "function": {"name": choice.get("name")}}
    return choice


def _append(messages: list[dict[str, Any]], item: dict[str, Any], path: str) -> None:
    """Appends an item; what an assistant said, thought and called between two turns of others is one message."""
    kind = item.get("type", "message")
    if kind == "message":
        role, content = item.get("role"), _text(item.get("content"), f"{path}.content")
        if role == "assistant":
            message = _of_assistant(messages, "content")
            message["content"] = (message["content"] or "") + content
        else:
            messages.append({"role": role, "content": content})
    elif kind == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        calls = _of_assistant(messages, "tool_calls").setdefault("tool_calls", [])
        calls.append({"id": item.get("call_id"), "type": "function", "function": function})
    elif kind == "function_call_output":
        output = _text(item.get("output"), f"{path}.output")
        messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": output})
    elif kind == "reasoning":
        text = _text(item.get("content") or [], f"{path}.content", ("reasoning_text",))
        _of_assistant(messages, "reasoning_content")["reasoning_content"] = text
    else:
        kinds = "message, function_call, function_call_output, reasoning"
        raise invalid(f"{path}.type", f"{str(kind)[:60]!r}: must be one of {kinds}")


def _of_assistant(messages: list[dict[str, Any]], field: str) -> dict[str, Any]:
    """Returns the message of the assistant that goes on, a new one unless the last is its."""
    last = messages[-1] if messages else None
    if last is None or last["role"] != "assistant" or (field == "reasoning_content" and last["content"]):
        messages.append({"role": "assistant", "content": None})
    return messages[-1]


def _text(content: Any, path: str, kinds: tuple[str, ...] = TEXT_PARTS) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise invalid(path, "must be a string or a list of parts")
    for i, part in enumerate(content):
        if not isinstance(part, dict) or part.get("type") not in kinds or not isinstance(part.get("text"), str):
            raise invalid(f"{path}[{i}]", f"must be text, a part of type {', '.join(kinds)}")
    return "".join(part["text"] for part in content)
