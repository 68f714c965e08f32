"""POST /v1/chat/completions."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import AsyncGenerator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from llm_runner import __version__
from llm_server.chat.requests import ChatRequest
from llm_server.chat.turn import Chat, ChatEvent, Choice, begin_chat
from llm_server.chat.usage import logprob_json, usage
from llm_server.web.bodies import read_request
from llm_server.web.streaming import SERVER_SENT, respond, respond_whole


async def chat_completions(request: Request) -> Response:
    """Answers as a whole or as server-sent events."""
    asked = await read_request(request, ChatRequest)
    answer = ChatCompletion(await begin_chat(request, asked))
    if asked.stream:
        return await respond(request, answer.chunks(), SERVER_SENT)
    return await respond_whole(request, answer.whole())


class ChatCompletion:
    """One answer."""

    def __init__(self, chat: Chat):
        self.chat = chat
        self.asked = chat.asked
        self.head = {
            "id": f"chatcmpl-{uuid.uuid4().hex}", "object": "chat.completion", "created": int(time.time()),
            "model": chat.engine.name, "system_fingerprint": f"mote-{__version__}",
        }  # fmt: skip

    async def whole(self) -> dict[str, Any]:
        choices = [
            {"index": choice.index, "message": choice.message(), "logprobs": self._logprobs(choice),
             "finish_reason": choice.finish_reason()}
            for choice in await self.chat.run()
        ]  # fmt: skip
        return self.head | {"choices": choices, "usage": self._usage()}

    async def chunks(self) -> AsyncGenerator[dict[str, Any], None]:
        async with contextlib.aclosing(self.chat.events()) as events:
            async for event in events:
                yield self._chunk(event)
        if self.asked.has_usage:
            yield self.head | {"object": "chat.completion.chunk", "choices": [], "usage": self._usage()}

    def _chunk(self, event: ChatEvent) -> dict[str, Any]:
        choice = event.choice
        found = {
            "index": choice.index, "delta": _delta(event),
            "logprobs": self._logprobs(choice) if choice.logprobs else None,
            "finish_reason": choice.finish_reason() if event.kind == "end" else None,
        }  # fmt: skip
        chunk = self.head | {"object": "chat.completion.chunk", "choices": [found]}
        if self.asked.has_usage:
            chunk["usage"] = None
        return chunk

    def _logprobs(self, choice: Choice) -> dict[str, Any] | None:
        """Takes those that no chunk has yet."""
        if not self.asked.logprobs:
            return None
        top = self.asked.top_logprobs or 0
        found = [logprob_json(self.chat.engine, entry, top) for entry in choice.logprobs]
        choice.logprobs.clear()
        return {"content": found, "refusal": None}

    def _usage(self) -> dict[str, Any]:
        return usage(len(self.chat.prompt_ids), self.chat.completion_tokens, self.chat.cached_tokens or 0)


def _delta(event: ChatEvent) -> dict[str, Any]:
    if event.kind == "begin":
        return {"role": "assistant", "content": ""}
    if event.kind == "content":
        return {"content": event.text}
    if event.kind == "reasoning":
        return {"reasoning_content": event.text}
    if event.call is not None:
        function = {"name": event.call.name, "arguments": event.call.arguments}
        index = len(event.choice.calls) - 1
        return {"tool_calls": [{"index": index, "id": event.call.id, "type": "function", "function": function}]}
    return {}
