"""Replies to conversations: the chat template makes the prompt, the reply parser splits what the model writes."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from llm_runner.generation import Generation, TokenLogprob
from llm_runner.reply import MAX_PROMPT_TAIL, ReplyEvent, ReplyParser

if TYPE_CHECKING:
    from llm_runner.model import Model


class ConversationOptions(TypedDict, total=False):
    """What a prompt is made of beside messages."""

    tools: Sequence[Mapping[str, Any] | Callable] | None  # JSON schemas, or functions (needs transformers)
    documents: Sequence[Mapping[str, Any]] | None
    chat_template: str | None  # None: the file's own
    continue_final_message: bool | str  # the reply goes on with the last message's content (or the field named)
    chat_template_kwargs: Mapping[str, Any] | None  # what else the template reads, such as {"enable_thinking": False}


class Conversation:
    """A conversation as the model reads it; options: those of `ConversationOptions`.

    Attributes: `ids`, the prompt; `num_calls`: how many tools the messages call
    """

    def __init__(self, model: Model, messages: Sequence[Mapping[str, Any]], **options: Unpack[ConversationOptions]):
        chat_template = options.get("chat_template")
        is_continued = options.get("continue_final_message", False)
        self._tools = options.get("tools")
        self.ids: list[int] = model.apply_chat_template(  # type: ignore[assignment]  # tokenize=True
            messages, self._tools, options.get("documents"), chat_template, not is_continued, is_continued,
            **model.special_tokens | dict(options.get("chat_template_kwargs") or {}),
        )  # fmt: skip
        self._template = chat_template or model.chat_template
        self._prompt_tail = model.detokenize(self.ids[-MAX_PROMPT_TAIL:])
        self.num_calls = sum(len(message.get("tool_calls") or ()) for message in messages)

    def reply_parser(self, is_constrained: bool = False) -> ReplyParser:
        """Returns a parser of one reply. is_constrained: it follows a grammar, so that all of it is content"""
        return ReplyParser(
            self._template, self._prompt_tail, tools=self._tools, format="text" if is_constrained else None
        )


class ChatGeneration:
    """An iterator over what a reply adds, as it is written.

    Attributes: `generation` (token_ids, logprobs, statistics, finish_reason), `prompt_tokens`, and `cached_tokens`:
    how many of those the session had read before
    Thread safety: one thread at a time; `cancel` may come from any.
    """

    def __init__(self, generation: Generation, conversation: Conversation, parser: ReplyParser, cached_tokens: int):
        self.generation = generation
        self.prompt_tokens = len(conversation.ids)
        self.cached_tokens = cached_tokens
        self._parser = parser
        self._num_calls = conversation.num_calls
        self._events: deque[ReplyEvent] = deque()
        self._is_finished = False

    def __iter__(self) -> ChatGeneration:
        return self

    def __next__(self) -> ReplyEvent:
        while not self._events:
            if (step := self.step()) is None:
                raise StopIteration
            self._events.extend(step[0])
        return self._events.popleft()

    def step(self) -> tuple[list[ReplyEvent], TokenLogprob | None] | None:
        """Takes one step of the model: what it adds, perhaps nothing, and the token; None at the end."""
        if self._is_finished:
            return None
        piece = self.generation.next_piece()
        events = self._parser.push(piece.text) if piece is not None and piece.text else []
        if piece is None or piece.finish_reason is not None:
            self._is_finished = True
            events += self._parser.finish()
        return [self._with_id(event) for event in events], piece and piece.logprob

    def run(self) -> dict[str, Any]:
        """Runs to the end and returns the message."""
        for _ in self:
            pass
        return self.message

    @property
    def message(self) -> dict[str, Any]:
        """The reply so far as a message to append to the conversation: role, content, and where there are any
        reasoning_content and tool_calls, each with an id.
        """
        message = self._parser.message()
        for index, call in enumerate(message.get("tool_calls", ())):
            call.setdefault("id", self._call_id(index))
        return message

    @property
    def finish_reason(self) -> str | None:
        """As of `Generation`."""
        return self.generation.finish_reason

    def cancel(self) -> None:
        """As `Generation.cancel`."""
        self.generation.cancel()

    def close(self) -> None:
        """Stops; the message stays as far as it came."""
        self._is_finished = True
        self._events.clear()
        self._parser.finish()
        self.generation.close()

    def __enter__(self) -> ChatGeneration:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _with_id(self, event: ReplyEvent) -> ReplyEvent:
        if event.kind in ("tool_call_begin", "tool_call_end") and not event.id:
            return dataclasses.replace(event, id=self._call_id(event.index))
        return event

    def _call_id(self, index: int) -> str:
        # Templates ask for ids that many models do not write; 9 letters and digits is what the strictest accepts.
        return f"call{self._num_calls + index:05d}"
