"""A model's reply: content, reasoning and tool calls, split while it is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llm_runner import _core
from llm_runner.chat import as_tools
from llm_runner.errors import ArgumentError

# By the MOTE_REPLY_* number.
_KINDS = (
    "none",
    "content",
    "reasoning",
    "tool_call_begin",
    "tool_call_arguments",
    "tool_call_end",
    "tool_call_discarded",
)


@dataclass(frozen=True)
class ReplyEvent:
    """What a piece of a reply adds.

    kind: "content" and "reasoning" (`text` was added), "tool_call_begin" (`text` is the tool's name),
    "tool_call_arguments" (`text` is a piece of their JSON), "tool_call_end", or "tool_call_discarded": the call is
    malformed, and what was written of it follows as content
    index: of the call, from 0   id: the call's, "" where the model wrote none
    """

    kind: str
    text: str = ""
    index: int = 0
    id: str = ""


class ReplyParser:
    """Reads a reply in pieces of any length, with special tokens spelled out.

    chat_template: the source of the model's template, by which the format is recognised
    prompt: what the reply follows, or the end of it: it may have begun the reasoning
    tools: those of the conversation; parameters that are strings by their schema stay strings in formats that do not
        tell strings from numbers
    format: one of `reply_formats()`, instead of recognising it
    Errors: ArgumentError   Thread safety: one thread at a time   Cost: linear in the text
    """

    def __init__(
        self,
        chat_template: str = "",
        prompt: str = "",
        *,
        tools: Sequence[Mapping[str, Any] | Callable] | None = None,
        format: str | None = None,
    ):
        self._core = _core.Reply(format, _replaced(chat_template), _replaced(prompt), as_tools(tools))

    @property
    def format(self) -> str:
        """The name of the format; "text" has neither reasoning nor tool calls."""
        return self._core.format()

    def push(self, text: str) -> list[ReplyEvent]:
        """Returns what the text adds; text that may be part of a mark is held back.

        Errors: ArgumentError if the reply is finished or has more than 16 MiB
        """
        if not isinstance(text, str):
            raise ArgumentError(f"text must be a str, not {type(text).__name__}")
        return _events(self._core.push(text.encode("utf-8", "replace")))

    def finish(self) -> list[ReplyEvent]:
        """Returns what was held back."""
        return _events(self._core.finish())

    def message(self) -> dict[str, Any]:
        """Returns what was read so far as a message of the conversation: role, content, and where there are any
        reasoning_content and tool_calls.
        """
        return json.loads(self._core.message())


def parse_reply(
    text: str,
    chat_template: str = "",
    prompt: str = "",
    *,
    tools: Sequence[Mapping[str, Any] | Callable] | None = None,
    format: str | None = None,
) -> dict[str, Any]:
    """Returns a whole reply as a message; the arguments are those of `ReplyParser`."""
    parser = ReplyParser(chat_template, prompt, tools=tools, format=format)
    parser.push(text)
    parser.finish()
    return parser.message()


def reply_formats() -> list[str]:
    """Returns the names of the formats that replies are known in."""
    return json.loads(_core.reply_formats())


def _events(found: list[tuple[int, int, str, str]]) -> list[ReplyEvent]:
    return [ReplyEvent(_KINDS[kind], text, index, call_id) for kind, index, text, call_id in found]


def _replaced(text: str) -> str:
    """Returns the text without what UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()
