"""A reply as blocks of a message, and as the events of a stream."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from llm_server.chat.turn import Chat, ChatEvent, Choice

REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
DELTAS = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking")}


class MessageWriter:
    """One answer."""

    def __init__(self, chat: Chat):
        self.chat = chat
        self._blocks: list[dict[str, Any]] = []
        self._is_open = False
        self._head = {
            "id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant", "model": chat.engine.name,
        }  # fmt: skip

    async def whole(self) -> dict[str, Any]:
        """Returns the message. Errors: those of the runner."""
        end: dict[str, Any] = {}
        async with contextlib.aclosing(self.chat.events()) as events:
            async for event in events:
                for made in self._of(event):
                    end = made["delta"] if made["type"] == "message_delta" else end
        return self._head | {"content": self._blocks} | end | {"usage": self._usage()}

    async def events(self) -> AsyncGenerator[dict[str, Any], None]:
        """Writes the message. Errors: those of the runner."""
        async with contextlib.aclosing(self.chat.events()) as events:
            async for event in events:
                for made in self._of(event):
                    yield made

    def _of(self, event: ChatEvent) -> Iterator[dict[str, Any]]:
        if event.kind == "begin":
            empty = {"content": [], "stop_reason": None, "stop_sequence": None, "usage": self._usage()}
            yield {"type": "message_start", "message": self._head | empty}
        elif event.kind == "content":
            yield from self._text("text", event.text)
        elif event.kind == "reasoning":
            yield from self._text("thinking", event.text)
        elif event.call is not None:
            yield from self._close()
            arguments = json.loads(event.call.arguments)
            block = {"type": "tool_use", "id": event.call.id, "name": event.call.name, "input": arguments}
            yield from self._open(block, block | {"input": {}})
            yield self._delta({"type": "input_json_delta", "partial_json": event.call.arguments})
            yield from self._close()
        else:
            yield from self._close()
            yield {"type": "message_delta", "delta": self._end(event.choice), "usage": self._usage()}
            yield {"type": "message_stop"}

    def _text(self, kind: str, text: str) -> Iterator[dict[str, Any]]:
        if not self._is_open or self._blocks[-1]["type"] != kind:
            yield from self._close()
            block = {"type": "text", "text": ""} if kind == "text" else {"type": kind, "thinking": "", "signature": ""}
            yield from self._open(block, dict(block))
        delta, field = DELTAS[kind]
        self._blocks[-1][field] += text
        yield self._delta({"type": delta, field: text})

    def _open(self, block: dict[str, Any], shown: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self._blocks.append(block)
        self._is_open = True
        yield {"type": "content_block_start", "index": len(self._blocks) - 1, "content_block": shown}

    def _close(self) -> Iterator[dict[str, Any]]:
        if self._is_open:
            self._is_open = False
            yield {"type": "content_block_stop", "index": len(self._blocks) - 1}

    def _delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": len(self._blocks) - 1, "delta": delta}

    def _end(self, choice: Choice) -> dict[str, Any]:
        if choice.reply.finish_reason == "stop_string":
            return {"stop_reason": "stop_sequence", "stop_sequence": self._stop_sequence(choice)}
        return {"stop_reason": REASONS[choice.finish_reason()], "stop_sequence": None}

    def _stop_sequence(self, choice: Choice) -> str | None:
        """Returns the stop that ended the reply: no other is in the text, which it would have ended before."""
        stop = self.chat.asked.stop
        text = self.chat.engine.model.detokenize(choice.reply.token_ids)
        return next((one for one in ([stop] if isinstance(stop, str) else stop or []) if one in text), None)

    def _usage(self) -> dict[str, Any]:
        cached = self.chat.cached_tokens or 0
        return {
            "input_tokens": len(self.chat.prompt_ids) - cached, "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0, "output_tokens": self.chat.completion_tokens,
        }  # fmt: skip
