"""POST /v1/chat/completions."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from llm_runner import ChatGeneration, Conversation, ReplyEvent, TokenLogprob, __version__
from llm_server.engine import Engine, finish_reason, in_thread, logprob_json, steps
from llm_server.errors import invalid
from llm_server.messages import checked_messages, checked_tools
from llm_server.requests import ChatRequest, read_request
from llm_server.streaming import respond, respond_whole


async def chat_completions(request: Request) -> Response:
    """Answers as a whole or as server-sent events."""
    engine: Engine = request.app.state.engine
    asked = await read_request(request, ChatRequest)
    engine.check_model(asked.model)
    if not engine.model.chat_template:
        raise invalid("messages", "the model's file has no chat template: use /v1/completions")
    if asked.top_logprobs and not asked.logprobs:
        raise invalid("top_logprobs", "is only accepted with logprobs = true")
    chat = Chat(engine, asked, await asyncio.to_thread(_render, engine, asked))
    return await (respond(request, chat.chunks()) if asked.stream else respond_whole(request, chat.answer()))


def _render(engine: Engine, asked: ChatRequest) -> Conversation:
    variables = dict(asked.chat_template_kwargs or {})
    if asked.reasoning_effort is not None:
        variables.setdefault("reasoning_effort", asked.reasoning_effort)
    conversation = Conversation(
        engine.model, checked_messages(asked), tools=checked_tools(asked), chat_template_kwargs=variables,
        continue_final_message=bool(asked.continue_final_message), tool_choice=asked.tool_choice,
        response_format=asked.response_format,
    )  # fmt: skip
    engine.check_prompt(conversation.ids, "messages")
    return conversation


@dataclass
class Choice:
    """One reply, as it is written."""

    index: int
    reply: ChatGeneration
    logprobs: list[TokenLogprob] = field(default_factory=list)  # of tokens that no chunk has yet
    calls: int = 0
    _call: dict[str, Any] | None = None

    def deltas(self, events: list[ReplyEvent]) -> list[dict[str, Any]]:
        """Returns what events add. Calls come whole, because one that is begun may turn out to be malformed."""
        return [delta for event in events if (delta := self._delta(event)) is not None]

    def _delta(self, event: ReplyEvent) -> dict[str, Any] | None:
        if event.kind == "content":
            return {"content": event.text}
        if event.kind == "reasoning":
            return {"reasoning_content": event.text}
        if event.kind == "tool_call_begin":
            self._call = {"name": event.text, "arguments": ""}
        elif event.kind == "tool_call_arguments" and self._call is not None:
            self._call["arguments"] += event.text
        elif event.kind == "tool_call_end" and self._call is not None:
            self.calls += 1
            call = {"index": event.index, "id": event.id, "type": "function", "function": self._call}
            return {"tool_calls": [call]}
        return None

    def message(self) -> dict[str, Any]:
        """Returns the whole reply with arguments spelled as a string."""
        message = self.reply.message
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"], ensure_ascii=False)
        if message.get("tool_calls") and not message["content"]:
            message["content"] = None
        return message

    def finish_reason(self) -> str:
        reason = finish_reason(self.reply.finish_reason)
        return "tool_calls" if self.calls and reason == "stop" else reason


class Chat:
    """One request."""

    def __init__(self, engine: Engine, asked: ChatRequest, conversation: Conversation):
        self.engine = engine
        self.asked = asked
        self.conversation = conversation
        self.options = [asked.generation_options(choice) for choice in range(asked.n or 1)]
        self.completion_tokens = 0
        self.cached_tokens: int | None = None
        self.head = {
            "id": f"chatcmpl-{uuid.uuid4().hex}", "object": "chat.completion", "created": int(time.time()),
            "model": engine.name, "system_fingerprint": f"mote-{__version__}",
        }  # fmt: skip

    async def answer(self) -> dict[str, Any]:
        choices = []
        async with self.engine.session(self.conversation.ids) as session:
            for index in range(len(self.options)):
                choice = await self._begin(session, index)
                async for events in self._steps(choice):
                    choice.deltas(events)
                logprobs = self._logprobs(choice)
                choices.append({"index": index, "message": choice.message(), "logprobs": logprobs,
                                "finish_reason": choice.finish_reason()})  # fmt: skip
        return self.head | {"choices": choices, "usage": self._usage()}

    async def chunks(self) -> AsyncGenerator[dict[str, Any], None]:
        async with self.engine.session(self.conversation.ids) as session:
            for index in range(len(self.options)):
                choice = await self._begin(session, index)
                yield self._chunk(choice, {"role": "assistant", "content": ""})
                async with contextlib.aclosing(self._steps(choice)) as found:
                    async for events in found:
                        for delta in choice.deltas(events):
                            yield self._chunk(choice, delta)
                yield self._chunk(choice, {}, choice.finish_reason())
        if self.asked.stream_options is not None and self.asked.stream_options.include_usage:
            yield self.head | {"object": "chat.completion.chunk", "choices": [], "usage": self._usage()}

    async def _begin(self, session, index: int) -> Choice:
        options = self.options[index] | {"max_time": self.engine.timeout}
        if self.asked.logprobs:
            options |= {"logprobs": True, "top_logprobs": self.asked.top_logprobs or 0}
        reply = await in_thread(session.reply, self.conversation, **options)
        if self.cached_tokens is None:
            self.cached_tokens = reply.cached_tokens
        return Choice(index, reply)

    async def _steps(self, choice: Choice) -> AsyncIterator[list[ReplyEvent]]:
        async with steps(choice.reply) as found:
            async for events, entry in found:
                if entry is not None:
                    self.completion_tokens += 1
                    if self.asked.logprobs and choice.reply.finish_reason not in ("eos", "stop_token"):
                        choice.logprobs.append(entry)
                yield events

    def _chunk(self, choice: Choice, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        has_logprobs = bool(choice.logprobs)
        found = {"index": choice.index, "delta": delta, "logprobs": self._logprobs(choice) if has_logprobs else None,
                 "finish_reason": reason}  # fmt: skip
        chunk = self.head | {"object": "chat.completion.chunk", "choices": [found]}
        if self.asked.stream_options is not None and self.asked.stream_options.include_usage:
            chunk["usage"] = None
        return chunk

    def _logprobs(self, choice: Choice) -> dict[str, Any] | None:
        """Takes those that no chunk has yet."""
        if not self.asked.logprobs:
            return None
        top = self.asked.top_logprobs or 0
        found = [logprob_json(self.engine, entry, top) for entry in choice.logprobs]
        choice.logprobs.clear()
        return {"content": found, "refusal": None}

    def _usage(self) -> dict[str, Any]:
        return usage(len(self.conversation.ids), self.completion_tokens, self.cached_tokens or 0)


def usage(prompt_tokens: int, completion_tokens: int, cached_tokens: int) -> dict[str, Any]:
    """Returns what a request cost; cached_tokens of the prompt had been read by an earlier one."""
    return {
        "prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens, "prompt_tokens_details": {"cached_tokens": cached_tokens},
    }  # fmt: skip
