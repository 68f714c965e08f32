"""POST /api/chat and /api/generate: lines of JSON."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from llm_server.chat.turn import Chat, ChatEvent, begin_chat, lease
from llm_server.engine.pool import ModelPool
from llm_server.ollama.request import GenerateRequest, OllamaChatRequest, OllamaRequest
from llm_server.openai.completions import Completion, begin_completion
from llm_server.web.bodies import read_request
from llm_server.web.exchange import Exchange, exchange_of
from llm_server.web.streaming import LINES, respond, respond_whole

GROWING = ("content", "thinking", "response", "tool_calls")  # from line to line


async def chat(request: Request) -> Response:
    """Answers in lines, or as a whole with "stream": false."""
    asked = await read_request(request, OllamaChatRequest)
    empty = {"message": {"role": "assistant", "content": ""}}
    if not asked.messages:
        return await _load(request, asked, empty)
    return await _answer(request, asked, _chat_lines(request, asked, await begin_chat(request, asked.as_chat())))


async def generate(request: Request) -> Response:
    """Answers in lines, or as a whole with "stream": false."""
    asked = await read_request(request, GenerateRequest)
    if not asked.prompt:
        return await _load(request, asked, {"response": ""})
    if asked.raw:
        completion = await begin_completion(request, asked.as_completion())
        return await _answer(request, asked, _raw_lines(request, asked, completion))
    return await _answer(request, asked, _text_lines(request, asked, await begin_chat(request, asked.as_chat())))


async def _load(request: Request, asked: OllamaRequest, empty: dict[str, Any]) -> Response:
    """A request without text brings a model into memory, or out of it."""
    models: ModelPool = request.app.state.models
    if asked.unloads():
        models.unload(models.find(asked.model))
        return JSONResponse(_head(asked) | empty | {"done": True, "done_reason": "unload"})
    await lease(request, asked.model)
    return JSONResponse(_head(asked) | empty | {"done": True, "done_reason": "load"})


async def _answer(request: Request, asked: OllamaRequest, lines: AsyncGenerator[dict[str, Any], None]) -> Response:
    if asked.unloads():
        models: ModelPool = request.app.state.models
        exchange_of(request).at_end.append(partial(models.unload, models.find(asked.model)))
    if asked.stream is not False:
        return await respond(request, lines, LINES)
    return await respond_whole(request, _joined(lines))


async def _joined(lines: AsyncGenerator[dict[str, Any], None]) -> dict[str, Any]:
    """Returns the lines of a stream as one: texts go on, lists too."""
    found: dict[str, Any] = {}
    async with contextlib.aclosing(lines):
        async for line in lines:
            found = _merged(found, line)
    return found


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    found = one | other
    for name in one.keys() & other.keys():
        if name == "message":
            found[name] = _merged(one[name], other[name])
        elif name in GROWING:
            found[name] = one[name] + other[name]
    return found


async def _chat_lines(request: Request, asked: OllamaRequest, chat: Chat) -> AsyncGenerator[dict[str, Any], None]:
    async with contextlib.aclosing(chat.events()) as events:
        async for event in events:
            if event.kind == "begin":
                continue
            line = _head(asked) | {"message": {"role": "assistant", "content": ""} | _message(event)}
            yield line | _end(request, event)


def _message(event: ChatEvent) -> dict[str, Any]:
    if event.call is not None:
        function = {"name": event.call.name, "arguments": json.loads(event.call.arguments)}
        return {"tool_calls": [{"id": event.call.id, "function": function}]}
    return {"thinking" if event.kind == "reasoning" else "content": event.text}


async def _text_lines(request: Request, asked: OllamaRequest, chat: Chat) -> AsyncGenerator[dict[str, Any], None]:
    async with contextlib.aclosing(chat.events()) as events:
        async for event in events:
            if event.kind in ("begin", "tool_call"):
                continue
            text = {"thinking" if event.kind == "reasoning" else "response": event.text}
            yield _head(asked) | {"response": ""} | text | _end(request, event)


async def _raw_lines(
    request: Request, asked: OllamaRequest, completion: Completion
) -> AsyncGenerator[dict[str, Any], None]:
    async with contextlib.aclosing(completion.chunks()) as chunks:
        async for chunk in chunks:
            choice = chunk["choices"][0]
            line = _head(asked) | {"response": choice["text"], "done": choice["finish_reason"] is not None}
            if line["done"]:
                line |= {"done_reason": choice["finish_reason"]} | _figures(exchange_of(request))
            yield line


def _head(asked: OllamaRequest) -> dict[str, Any]:
    return {"model": asked.model, "created_at": datetime.now(UTC).isoformat().replace("+00:00", "Z")}


def _end(request: Request, event: ChatEvent) -> dict[str, Any]:
    if event.kind != "end":
        return {"done": False}
    reason = event.choice.finish_reason()
    return {"done": True, "done_reason": "length" if reason == "length" else "stop"} | _figures(exchange_of(request))


def _figures(exchange: Exchange) -> dict[str, int]:
    """Times are nanoseconds."""
    total = time.monotonic() - exchange.started
    first = exchange.first_token if exchange.first_token is not None else total
    return {
        "total_duration": int(total * 1e9), "load_duration": 0,
        "prompt_eval_count": exchange.prompt_tokens, "prompt_eval_duration": int(first * 1e9),
        "eval_count": exchange.completion_tokens, "eval_duration": int((total - first) * 1e9),
    }  # fmt: skip
