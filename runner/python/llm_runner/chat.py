"""Chat templates: messages to prompts, as transformers renders them."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from llm_runner import _core
from llm_runner.errors import ArgumentError


def render_chat_template(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any] | Callable] | None = None,
    documents: Sequence[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool = False,
    continue_final_message: bool | str = False,
    **variables: Any,
) -> str:
    """Returns the prompt that a Jinja chat template makes of a conversation.

    tools: JSON schemas, or functions with type hints and a docstring (needs transformers)
    continue_final_message: the prompt ends in the last message's content (or the field named), for the model to go on
    variables: whatever else the template reads, such as enable_thinking, bos_token or eos_token
    Errors: TemplateError with jinja2's message; ArgumentError for what JSON cannot hold
    Cost: the template is parsed once for as long as it is among the last 64 used   Thread safety: any number of threads
    """
    return render_prompt(
        template, messages, tools, documents, add_generation_prompt, continue_final_message, **variables
    )[0]


def render_prompt(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any] | Callable] | None = None,
    documents: Sequence[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool = False,
    continue_final_message: bool | str = False,
    **variables: Any,
) -> tuple[str, list[tuple[int, int]]]:
    """Returns the prompt, and which bytes of it (UTF-8) came from messages, tools and documents."""
    conversation = as_json(messages, tools, documents, add_generation_prompt, continue_final_message, variables)
    return parsed(template).render(*conversation)


def as_json(
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any] | Callable] | None,
    documents: Sequence[Mapping[str, Any]] | None,
    add_generation_prompt: bool,
    continue_final_message: bool | str,
    variables: Mapping[str, Any],
) -> tuple[str, str | None, str | None, str | None, bool, str | None]:
    """Returns a conversation as the C API takes it. Errors: ArgumentError for what JSON cannot hold."""
    return (
        json_text("messages", list(messages)),
        as_tools(tools),
        None if documents is None else json_text("documents", list(documents)),
        json_text("variables", variables) if variables else None,
        bool(add_generation_prompt),
        "content" if continue_final_message is True else continue_final_message or None,
    )


def as_tools(tools: Sequence[Mapping[str, Any] | Callable] | None) -> str | None:
    """Returns tools as the C API takes them. Errors: ArgumentError for what JSON cannot hold."""
    return None if tools is None else json_text("tools", [_tool_schema(tool) for tool in tools])


@lru_cache(maxsize=64)
def parsed(template: str) -> _core.ChatTemplate:
    """Parses a template. Errors: TemplateError with jinja2's message."""
    try:
        return _core.ChatTemplate(template.encode())
    except UnicodeEncodeError as error:
        raise ArgumentError(f"the chat template is not valid Unicode: {error}") from None


def _tool_schema(tool: Any) -> Any:
    if not callable(tool) or isinstance(tool, Mapping):
        return tool
    try:
        from transformers.utils import get_json_schema
    except ImportError:
        raise ArgumentError("tools that are functions need the package transformers; pass JSON schemas") from None
    try:
        return get_json_schema(tool)
    except Exception as error:  # of transformers, for a docstring without what it needs
        raise ArgumentError(f"tools: {getattr(tool, '__name__', tool)}: {error}") from error


def json_text(name: str, value: Any) -> str:
    try:
        return json.dumps(_plain(name, value), ensure_ascii=False).encode().decode()
    except UnicodeEncodeError as error:
        raise ArgumentError(f"{name}: not valid Unicode: {error}") from None


def _plain(name: str, value: Any) -> Any:
    """Rebuilds a value of JSON types, by the rules of transformers; objects become "<their type>"."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ArgumentError(f"{name} = {value}: must be finite")
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ArgumentError(f"{name}: the key {key!r} must be a string")
        return {key: _plain(f"{name}[{key!r}]", item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(f"{name}[{i}]", item) for i, item in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: _plain(f"{name}.{field.name}", getattr(value, field.name)) for field in fields}
    if callable(getattr(value, "model_dump", None)):  # pydantic
        return _plain(name, value.model_dump())
    if callable(getattr(value, "item", None)) and getattr(value, "ndim", None) == 0:  # numpy scalars
        return _plain(name, value.item())
    return f"<{type(value).__name__}>"
