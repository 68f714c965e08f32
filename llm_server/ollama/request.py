"""What requests of Ollama's API may say, and the chats and completions that they are."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field

from llm_server.chat.options import Count, OptionFields
from llm_server.chat.requests import ChatRequest
from llm_server.openai.completions import CompletionRequest
from llm_server.web.bodies import Fields
from llm_server.web.errors import invalid


class Options(OptionFields):
    """Ollama's names, and the runner's own."""

    num_predict: Annotated[int, Field(ge=-2, le=2**31 - 1)] | None = Field(
        None, description="tokens at most; below 1: until the context is full"
    )
    stop: str | list[str] | None = None
    repeat_penalty: float | None = None
    repeat_last_n: Annotated[int, Field(ge=-1)] | None = Field(None, description="-1: the whole context, 0: none")
    num_ctx: int | None = Field(None, description="changes nothing: --context-length")

    def without_effect(self) -> list[str]:
        return ["num_ctx"] if self.num_ctx is not None else []

    def of_chat(self) -> dict[str, Any]:
        """Returns them as fields of a chat or a completion."""
        found = {name: getattr(self, name) for name in OptionFields.model_fields}
        found["stop"] = self.stop
        if self.num_predict is not None and self.num_predict > 0:
            found["max_tokens"] = self.num_predict
        if self.repeat_penalty is not None:
            found["repetition_penalty"] = self.repeat_penalty
        if self.repeat_last_n == 0:
            found["repetition_penalty"] = 1.0
        elif self.repeat_last_n is not None:
            found["repetition_window"] = max(self.repeat_last_n, 0)
        return {name: value for name, value in found.items() if value is not None}


class OllamaRequest(Fields):
    model: str
    stream: bool | None = Field(None, description="absent: true")
    format: Any = Field(None, description='"json", or a JSON schema')
    options: Options | None = None
    think: bool | str | None = Field(None, description="sets the template's variable enable_thinking")
    keep_alive: str | int | float | None = Field(None, description="0: takes the model out of memory, if it is idle")

    def without_effect(self) -> list[str]:
        # How long a model stays is for --max-memory to say.
        return ["keep_alive"] if self.keep_alive is not None and not self.unloads() else []

    def unloads(self) -> bool:
        return self.keep_alive in (0, "0", "0s", "0m")

    def chat(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None) -> ChatRequest:
        """Returns the chat of a request. Errors: ApiError naming the field."""
        given = self.options.of_chat() if self.options is not None else {}
        variables = None if self.think is None else {"enable_thinking": bool(self.think)}
        effort = self.think if isinstance(self.think, str) else None
        return ChatRequest.model_construct(
            **given, model=self.model, messages=messages, tools=tools or None, chat_template_kwargs=variables,
            reasoning_effort=effort, response_format=self._response_format(),
        )  # fmt: skip

    def _response_format(self) -> dict[str, Any] | None:
        if self.format in (None, ""):
            return None
        if self.format == "json":
            return {"type": "json_object"}
        if not isinstance(self.format, dict):
            raise invalid("format", f'{json.dumps(self.format)[:60]}: must be "json" or a JSON schema')
        return {"type": "json_schema", "json_schema": {"name": "reply", "schema": self.format}}


class OllamaChatRequest(OllamaRequest):
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None

    def as_chat(self) -> ChatRequest:
        messages = [_message(message, f"messages[{i}]") for i, message in enumerate(self.messages or ())]
        return self.chat(messages, self.tools)


class GenerateRequest(OllamaRequest):
    prompt: str | None = None
    system: str | None = None
    raw: bool | None = Field(None, description="true: the prompt is continued without a template")
    suffix: str | None = None
    images: list[Any] | None = None
    template: str | None = None
    context: list[Count] | None = Field(None, description="changes nothing: what prompts share is found without it")

    def without_effect(self) -> list[str]:
        found = [name for name in ("template", "suffix", "context") if getattr(self, name)]
        return super().without_effect() + found

    def as_chat(self) -> ChatRequest:
        _refuse_images(self.images, "images")
        system = [{"role": "system", "content": self.system}] if self.system else []
        return self.chat([*system, {"role": "user", "content": self.prompt}])

    def as_completion(self) -> CompletionRequest:
        """Returns the completion of a raw request."""
        if self.format not in (None, ""):
            given = {"json_schema": {"type": "object"} if self.format == "json" else self.format}
        else:
            given = {}
        given |= self.options.of_chat() if self.options is not None else {}
        return CompletionRequest.model_construct(**given, model=self.model, prompt=self.prompt)


def _message(message: dict[str, Any], path: str) -> dict[str, Any]:
    """Returns a message as OpenAI writes it."""
    _refuse_images(message.get("images"), f"{path}.images")
    found = {key: value for key, value in message.items() if key in ("role", "content", "tool_call_id")}
    found.setdefault("content", "")
    if message.get("thinking"):
        found["reasoning_content"] = message["thinking"]
    if message.get("tool_name"):
        found["name"] = message["tool_name"]
    calls = message.get("tool_calls")
    if not calls:
        return found
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise invalid(f"{path}.tool_calls", "must be a list of objects")
    return found | {"tool_calls": [{"type": "function", **call} for call in calls]}


def _refuse_images(images: Any, path: str) -> None:
    if images:
        raise invalid(path, "images are not supported: the runner reads text")
