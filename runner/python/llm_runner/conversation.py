"""Replies to conversations."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

from llm_runner import _core
from llm_runner.chat import as_json, json_text
from llm_runner.generation import TokenLogprob, with_rates
from llm_runner.labels import file_label, never_raises
from llm_runner.loaded import LoadedModel
from llm_runner.reply import ReplyEvent


class ConversationOptions(TypedDict, total=False):
    """What a prompt is made of beside messages, and what its reply must be."""

    tools: Sequence[Mapping[str, Any] | Callable] | None  # JSON schemas, or functions (needs transformers)
    documents: Sequence[Mapping[str, Any]] | None
    chat_template: str | None  # None: the file's own
    continue_final_message: bool | str  # the reply goes on with the last message's content (or the field named)
    chat_template_kwargs: Mapping[str, Any] | None  # what else the template reads, such as {"enable_thinking": False}
    tool_choice: str | Mapping[str, Any] | None  # "auto", "none", "required" or OpenAI's object that names a function
    response_format: Mapping[str, Any] | None  # OpenAI's {"type": "json_schema", "json_schema": {"schema": ..}}


class Conversation:
    """A conversation as the model reads it; options: those of `ConversationOptions`.

    is_cancelled: as of `Grammar`, where tool_choice or response_format ask for one
    Attributes: `ids`, the prompt
    Errors: TemplateError with jinja2's message; ArgumentError naming the field; CancelledError
    """

    def __init__(
        self,
        model: LoadedModel,
        messages: Sequence[Mapping[str, Any]],
        *,
        is_cancelled: Callable[[], object] | None = None,
        **options: Unpack[ConversationOptions],
    ):
        self._model = model
        self._num_messages = len(messages)
        self._core = _core.Chat(model._core)
        texts = as_json(
            messages, options.get("tools"), options.get("documents"), False,
            options.get("continue_final_message", False), options.get("chat_template_kwargs") or {},
        )  # fmt: skip
        of_messages, tools, documents, variables, _, continued = texts
        self._set("messages", of_messages)
        self._set("tools", tools)
        self._set("documents", documents)
        self._set("variables", variables)
        self._set("continue_final_message", continued)
        self._set("chat_template", options.get("chat_template"))
        choice, response_format = options.get("tool_choice"), options.get("response_format")
        if choice is not None:
            self._set("tool_choice", choice if isinstance(choice, str) else json_text("tool_choice", choice))
        if response_format is not None:
            self._set("response_format", json_text("response_format", response_format))
        self.ids: list[int] = self._core.prompt(is_cancelled)

    @never_raises
    def __repr__(self) -> str:
        return f"Conversation of {file_label(self._model.path)}: {self._num_messages} messages, {len(self.ids)} tokens"

    def _set(self, field: str, text: str | None) -> None:
        if text:
            self._core.set(_core.CHAT_FIELDS[field], text)


class ChatGeneration:
    """An iterator over what a reply adds, as it is written.

    Attributes, complete once it ends: `token_ids`, `logprobs` and `finish_reason` as of `Generation`; `prompt_tokens`,
    and `cached_tokens`: how many of those the session had read before
    Thread safety: one thread at a time; `cancel` may come from any.
    """

    def __init__(self, core: _core.ChatTurn, on_close: Callable[[], None] = lambda: None):
        self._core: _core.ChatTurn | None = core
        self._on_close = on_close
        self._events: deque[ReplyEvent] = deque()
        self._message = ""
        self._statistics = self._core.statistics()
        self.token_ids: list[int] = []
        self.logprobs: list[TokenLogprob] = []
        self.finish_reason: str | None = None
        self.cached_tokens: int = self._statistics["kept_tokens"]
        self.prompt_tokens: int = self._statistics["prompt_tokens"] + self.cached_tokens

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
        if self._core is None:
            return None
        try:
            token_id, logprob, top, self.finish_reason, events = self._core.next()
        except BaseException:
            self._end()
            raise
        entry = None if token_id is None else TokenLogprob(token_id, logprob, top)
        if entry is not None:
            self.token_ids.append(entry.id)
            self.logprobs.append(entry)
        if self.finish_reason is not None:
            self._end()
        return [ReplyEvent(kind, text, index, call_id) for kind, index, text, call_id in events], entry

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
        return json.loads(self._message if self._core is None else self._core.message())

    @property
    def statistics(self) -> dict[str, Any]:
        """As of `Generation`; `kept_tokens` of the prompt, which are not among its prompt_tokens, and
        `forgotten_tokens` of the conversation, because the context was full.
        """
        return with_rates(self._statistics if self._core is None else self._core.statistics())

    def cancel(self) -> None:
        """As `Generation.cancel`."""
        core = self._core
        if core is not None:
            core.cancel()

    def close(self) -> None:
        """Stops; the message stays as far as it came."""
        self._events.clear()
        if self._core is not None:
            self._core.stop()
            self._end()

    def _end(self) -> None:
        core, self._core = self._core, None
        if core is not None:
            self._message, self._statistics = core.message(), core.statistics()
            self._on_close()

    @never_raises
    def __repr__(self) -> str:
        state = self.finish_reason or ("closed" if self._core is None else "running")
        return f"ChatGeneration: {self.prompt_tokens} tokens of prompt, {len(self.token_ids)} of reply, {state}"

    def __enter__(self) -> ChatGeneration:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
