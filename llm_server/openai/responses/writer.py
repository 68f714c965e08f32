"""A reply as items of a response, and as the events of a stream."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from llm_server.chat.turn import Chat, ChatEvent, Choice
from llm_server.chat.usage import logprob_json
from llm_server.openai.responses.request import ResponsesRequest
from llm_server.web.errors import as_api_error

PARTS = {"message": "output_text", "reasoning": "reasoning_text"}


class ResponseWriter:
    """One answer. Attributes: `response`, as far as it came; `choice`, the reply behind it."""

    def __init__(self, chat: Chat, asked: ResponsesRequest):
        self.chat = chat
        self.asked = asked
        self.choice: Choice | None = None
        self._item: dict[str, Any] | None = None  # that is being written
        self._number = 0
        self.response = self._empty()

    async def events(self) -> AsyncGenerator[dict[str, Any], None]:
        """Writes the reply. What goes wrong after the first event is the last one."""
        try:
            async with contextlib.aclosing(self.chat.events()) as events:
                async for event in events:
                    self.choice = event.choice
                    for made in self._of(event):
                        made["sequence_number"] = self._number
                        self._number += 1
                        yield made
        except Exception as error:
            if self.choice is None:
                raise
            told = as_api_error(error)
            self.response |= {"status": "failed", "error": {"code": told.code or "server_error", "message": str(told)}}
            yield {"type": "response.failed", "response": self.response, "sequence_number": self._number}

    async def run(self) -> dict[str, Any]:
        """Returns the whole response. Errors: those of the runner."""
        async with contextlib.aclosing(self.chat.events()) as events:
            async for event in events:
                self.choice = event.choice
                for _ in self._of(event):
                    pass
        return self.response

    def _of(self, event: ChatEvent) -> Iterator[dict[str, Any]]:
        if event.kind == "begin":
            yield {"type": "response.created", "response": dict(self.response)}
            yield {"type": "response.in_progress", "response": dict(self.response)}
        elif event.kind == "content":
            yield from self._text("message", event)
        elif event.kind == "reasoning":
            yield from self._text("reasoning", event)
        elif event.call is not None:
            yield from self._close("completed")
            yield from self._call(event)
        else:
            yield from self._end(event.choice)

    def _text(self, kind: str, event: ChatEvent) -> Iterator[dict[str, Any]]:
        if self._item is None or self._item["type"] != kind:
            yield from self._close("completed")
            yield from self._open(kind)
        assert self._item is not None
        self._item["content"][0]["text"] += event.text
        delta = {"type": f"response.{PARTS[kind]}.delta", "delta": event.text} | self._place()
        if kind == "message":
            delta["logprobs"] = self._logprobs(event.choice)
            self._item["content"][0]["logprobs"] += delta["logprobs"]
        yield delta

    def _open(self, kind: str) -> Iterator[dict[str, Any]]:
        prefix = "msg" if kind == "message" else "rs"
        item: dict[str, Any] = {"type": kind, "id": _id(prefix), "status": "in_progress", "content": []}
        item |= {"role": "assistant"} if kind == "message" else {"summary": []}
        part: dict[str, Any] = {"type": PARTS[kind], "text": ""}
        if kind == "message":
            part |= {"annotations": [], "logprobs": []}
        self.response["output"].append(item)
        yield {"type": "response.output_item.added", "output_index": self._index(), "item": dict(item)}
        self._item = item
        yield {"type": "response.content_part.added", "part": dict(part)} | self._place()
        item["content"] = [part]

    def _close(self, status: str) -> Iterator[dict[str, Any]]:
        if self._item is None:
            return
        part = self._item["content"][0]
        done = {"type": f"response.{part['type']}.done", "text": part["text"]} | self._place()
        yield done | ({"logprobs": part["logprobs"]} if "logprobs" in part else {})
        yield {"type": "response.content_part.done", "part": part} | self._place()
        self._item["status"] = status
        yield {"type": "response.output_item.done", "output_index": self._index(), "item": self._item}
        self._item = None

    def _call(self, event: ChatEvent) -> Iterator[dict[str, Any]]:
        assert event.call is not None
        item = {
            "type": "function_call", "id": _id("fc"), "call_id": event.call.id, "name": event.call.name,
            "arguments": "", "status": "in_progress",
        }  # fmt: skip
        self.response["output"].append(item)
        place = {"item_id": item["id"], "output_index": self._index()}
        yield {"type": "response.output_item.added", "output_index": self._index(), "item": dict(item)}
        arguments = event.call.arguments
        yield {"type": "response.function_call_arguments.delta", "delta": arguments} | place
        item |= {"arguments": arguments, "status": "completed"}
        done = {"type": "response.function_call_arguments.done", "arguments": arguments, "name": event.call.name}
        yield done | place
        yield {"type": "response.output_item.done", "output_index": self._index(), "item": item}

    def _end(self, choice: Choice) -> Iterator[dict[str, Any]]:
        is_whole = choice.finish_reason() != "length"
        yield from self._close("completed" if is_whole else "incomplete")
        self.response["status"] = "completed" if is_whole else "incomplete"
        if not is_whole:
            self.response["incomplete_details"] = {"reason": "max_output_tokens"}
        self.response["usage"] = self._usage(choice)
        yield {"type": f"response.{self.response['status']}", "response": self.response}

    def _place(self) -> dict[str, Any]:
        assert self._item is not None
        return {"item_id": self._item["id"], "output_index": self._index(), "content_index": 0}

    def _index(self) -> int:
        return len(self.response["output"]) - 1

    def _logprobs(self, choice: Choice) -> list[dict[str, Any]]:
        """Takes those that no event has yet."""
        top = self.asked.top_logprobs or 0
        found = [logprob_json(self.chat.engine, entry, top) for entry in choice.logprobs]
        choice.logprobs.clear()
        return found

    def _usage(self, choice: Choice) -> dict[str, Any]:
        reasoning = len(self.chat.engine.model.tokenize(choice.reasoning, False)) if choice.reasoning else 0
        prompt, completion = len(self.chat.prompt_ids), self.chat.completion_tokens
        return {
            "input_tokens": prompt, "input_tokens_details": {"cached_tokens": self.chat.cached_tokens or 0},
            "output_tokens": completion, "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": prompt + completion,
        }  # fmt: skip

    def _empty(self) -> dict[str, Any]:
        asked = self.asked
        text = asked.text.format if asked.text is not None and asked.text.format is not None else {"type": "text"}
        effort = asked.reasoning.effort if asked.reasoning is not None else None
        return {
            "id": _id("resp"), "object": "response", "created_at": int(time.time()), "status": "in_progress",
            "background": False, "error": None, "incomplete_details": None, "instructions": asked.instructions,
            "max_output_tokens": asked.max_output_tokens, "metadata": asked.metadata or {},
            "model": self.chat.engine.name, "output": [], "parallel_tool_calls": True,
            "previous_response_id": asked.previous_response_id, "reasoning": {"effort": effort, "summary": None},
            "store": asked.store is not False, "temperature": asked.temperature, "text": {"format": text},
            "tool_choice": asked.tool_choice or "auto", "tools": asked.tools or [], "top_p": asked.top_p,
            "truncation": "disabled", "usage": None, "user": asked.user,
        }  # fmt: skip


def _id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"
