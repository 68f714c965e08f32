"""A conversation and the replies to it, as events that every API writes in its own words."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import string
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from starlette.requests import Request

from llm_runner import ArgumentError, ChatGeneration, Conversation, Grammar, ReplyEvent, Session, TokenLogprob
from llm_server.chat.messages import checked_messages, checked_tools
from llm_server.chat.options import SamplingRequest
from llm_server.chat.requests import ChatRequest
from llm_server.engine.engine import Engine
from llm_server.engine.pool import ModelPool
from llm_server.engine.steps import in_thread, steps
from llm_server.web.errors import ApiError, invalid
from llm_server.web.exchange import Exchange, exchange_of

CALL_ID_LETTERS = string.ascii_letters + string.digits
CALL_ID_LENGTH = 9  # what the strictest templates accept


class ToolCall(NamedTuple):
    id: str  # of this call only
    name: str
    arguments: str  # JSON


class ChatEvent(NamedTuple):
    """kind: "begin" and "end" of a choice; "content", "reasoning": text that it adds; "tool_call": a whole one"""

    choice: Choice
    kind: str
    text: str = ""
    call: ToolCall | None = None


@dataclass
class Choice:
    """One reply, as it is written."""

    index: int
    reply: ChatGeneration
    content: str = ""
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)  # of tokens that nobody took yet
    _begun: tuple[str, list[str]] | None = None  # name and parts of the arguments

    def take(self, event: ReplyEvent) -> ChatEvent | None:
        """Returns what an event adds. Calls come whole, because one that is begun may turn out to be malformed."""
        if event.kind == "content":
            self.content += event.text
            return ChatEvent(self, "content", event.text)
        if event.kind == "reasoning":
            self.reasoning += event.text
            return ChatEvent(self, "reasoning", event.text)
        if event.kind == "tool_call_begin":
            self._begun = (event.text, [])
        elif event.kind == "tool_call_arguments" and self._begun is not None:
            self._begun[1].append(event.text)
        elif event.kind == "tool_call_end" and self._begun is not None:
            name, parts = self._begun
            self.calls.append(ToolCall(_call_id(), name, "".join(parts)))
            return ChatEvent(self, "tool_call", call=self.calls[-1])
        return None

    def message(self) -> dict[str, Any]:
        """Returns the whole reply as OpenAI writes it."""
        message = self.reply.message
        for call, own in zip(message.get("tool_calls", ()), self.calls, strict=False):
            call["id"] = own.id
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"], ensure_ascii=False)
        if message.get("tool_calls") and not message["content"]:
            message["content"] = None
        return message

    def finish_reason(self) -> str:
        """Returns "stop", "length" or "tool_calls"."""
        reason = openai_reason(self.reply.finish_reason)
        return "tool_calls" if self.calls and reason == "stop" else reason


def _call_id() -> str:
    return "".join(secrets.choice(CALL_ID_LETTERS) for _ in range(CALL_ID_LENGTH))


def openai_reason(reason: str | None) -> str:
    """Returns OpenAI's word for the end of a generation."""
    return "length" if reason in ("length", "time") else "stop"


async def lease(request: Request, name: str | None) -> Engine:
    """Returns the engine of a model, which stays in memory until the request is answered.

    Errors: ApiError 404 for another name, 503 if there is no room
    """
    pool: ModelPool = request.app.state.models
    model = pool.find(name)
    exchange = exchange_of(request)
    exchange.model = model.name
    engine = await pool.use(model)
    exchange.at_end.append(partial(pool.release, model))
    return engine


async def grammar_options(request: Request, engine: Engine, asked: SamplingRequest) -> dict[str, Any]:
    """Compiles the constraint of a request, if it has one, to an option of its generations.

    Errors: ApiError naming the field
    """
    wanted = asked.constraint()
    if wanted is None:
        return {}
    name, source = wanted
    pool: ModelPool = request.app.state.models
    try:
        grammar: Grammar = await pool.compiler.run(engine.timeout, partial(Grammar, engine.model, **source))
    except ArgumentError as error:
        text = str(error).removeprefix("json_schema: ").removeprefix("regex: ").removeprefix("grammar: ")
        raise ApiError(400, f"{name}: {text}", name) from None
    return {"grammar": grammar}


async def render(request: Request, engine: Engine, asked: ChatRequest) -> Conversation:
    """Makes the prompt of a chat. Errors: ApiError naming the field; those of templates."""
    if not engine.model.chat_template:
        raise invalid("messages", "the model's file has no chat template: use /v1/completions")
    make = partial(
        Conversation, engine.model, checked_messages(asked), tools=checked_tools(asked), documents=asked.documents,
        chat_template_kwargs=asked.template_variables(), continue_final_message=bool(asked.continue_final_message),
        tool_choice=asked.tool_choice, response_format=asked.checked_response_format(),
    )  # fmt: skip
    pool: ModelPool = request.app.state.models
    beside = pool.compiler.run(engine.timeout, make) if asked.is_constrained() else asyncio.to_thread(make)
    conversation = await beside
    engine.check_prompt(conversation.ids, "messages")
    return conversation


async def begin_chat(request: Request, asked: ChatRequest) -> Chat:
    """Finds the model of a request and makes its prompt. Errors: ApiError naming the field; those of templates."""
    if asked.top_logprobs and not asked.logprobs:
        raise invalid("top_logprobs", "is only accepted with logprobs = true")
    engine = await lease(request, asked.model)
    constraint = await grammar_options(request, engine, asked)
    return Chat(engine, asked, await render(request, engine, asked), constraint, exchange_of(request))


class Chat:
    """One request. Attributes, complete with the last event: completion_tokens, cached_tokens."""

    def __init__(
        self, engine: Engine, asked: ChatRequest, conversation: Conversation, constraint: dict[str, Any],
        exchange: Exchange,
    ):  # fmt: skip
        self.engine = engine
        self.asked = asked
        self.prompt_ids = conversation.ids
        self.completion_tokens = 0
        self.cached_tokens: int | None = None
        self._conversation = conversation
        self._exchange = exchange
        self._mix = engine.mix(asked.model, asked.adapters)
        exchange.prompt_tokens = len(conversation.ids)
        of_all = constraint | {"max_time": asked.most_seconds(engine.timeout)}
        if asked.logprobs:
            of_all |= {"logprobs": True, "top_logprobs": asked.top_logprobs or 0}
        self._options = [asked.generation_options(choice) | of_all for choice in range(asked.n or 1)]

    async def events(self) -> AsyncGenerator[ChatEvent, None]:
        """Replies, one choice after the other. Closing it stops the model."""
        async with self.engine.session(self.prompt_ids, self._mix) as session:
            for index in range(len(self._options)):
                choice = await self._begin(session, index)
                yield ChatEvent(choice, "begin")
                async with contextlib.aclosing(self._steps(choice)) as found:
                    async for events in found:
                        for event in events:
                            if (made := choice.take(event)) is not None:
                                yield made
                yield ChatEvent(choice, "end")

    async def run(self) -> list[Choice]:
        """Returns the whole replies."""
        async with contextlib.aclosing(self.events()) as events:
            return [event.choice async for event in events if event.kind == "end"]

    async def _begin(self, session: Session, index: int) -> Choice:
        reply = await in_thread(session.reply, self._conversation, **self._options[index])
        if self.cached_tokens is None:
            self.cached_tokens = self._exchange.cached_tokens = reply.cached_tokens
        return Choice(index, reply)

    async def _steps(self, choice: Choice) -> AsyncIterator[list[ReplyEvent]]:
        async with steps(choice.reply) as found:
            async for events, entry in found:
                if entry is not None:
                    self.completion_tokens += 1
                    self._exchange.on_token()
                    if self.asked.logprobs and choice.reply.finish_reason not in ("eos", "stop_token"):
                        choice.logprobs.append(entry)
                yield events
