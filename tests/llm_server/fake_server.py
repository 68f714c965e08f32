"""The chat page before an API that says what a test tells it to."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from llm_server.page.routes import page_routes
from llm_server.web.exchange import Exchanges


@dataclass
class Reply:
    """text, reasoning: sent in pieces   held: after this many pieces until `release` is called
    error: instead of a stream, with this status   breaks: the connection ends after the pieces
    finish: its finish_reason   tokens: what usage says
    """

    text: str = ""
    reasoning: str = ""
    piece: int = 8
    held: int | None = None
    error: str | None = None
    status: int = 500
    breaks: bool = False
    finish: str = "stop"
    tokens: int = 5
    released: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        self.released.set()

    def pieces(self) -> list[dict[str, str]]:
        found = []
        for name, text in (("reasoning_content", self.reasoning), ("content", self.text)):
            found += [{name: text[at : at + self.piece]} for at in range(0, len(text), self.piece)]
        return found


class FakeServer:
    """replies: what the next requests get, in order; after them "ok"   requests: bodies that came
    models: ids   key: None: none is asked for   running: replies that are being sent
    """

    def __init__(self):
        self.replies: list[Reply] = []
        self.requests: list[dict[str, Any]] = []
        self.models = ["demo"]
        self.key: str | None = None
        self.running = 0
        self.url = ""

    def say(self, text: str = "", **options) -> Reply:
        reply = Reply(text, **options)
        self.replies.append(reply)
        return reply

    def app(self) -> Starlette:
        routes = [Route("/v1/models", self._models), Route("/v1/chat/completions", self._chat, methods=["POST"])]
        return Starlette(routes=[*routes, *page_routes()], middleware=[Middleware(Exchanges, lambda exchange: None)])

    def _refusal(self, request: Request) -> Response | None:
        if self.key is None or request.headers.get("authorization") == f"Bearer {self.key}":
            return None
        return JSONResponse({"error": {"message": "the API key is missing or wrong"}}, 401)

    async def _models(self, request: Request) -> Response:
        data = [{"id": name, "object": "model"} for name in self.models]
        return self._refusal(request) or JSONResponse({"object": "list", "data": data})

    async def _chat(self, request: Request) -> Response:
        if (refusal := self._refusal(request)) is not None:
            return refusal
        self.requests.append(await request.json())
        reply = self.replies.pop(0) if self.replies else Reply("ok")
        if reply.error is not None:
            return JSONResponse({"error": {"message": reply.error}}, reply.status)
        return StreamingResponse(self._stream(reply), media_type="text/event-stream")

    async def _stream(self, reply: Reply):
        self.running += 1
        try:
            yield _event({"role": "assistant", "content": ""})
            for index, delta in enumerate(reply.pieces()):
                while index == reply.held and not reply.released.is_set():
                    await asyncio.sleep(0.01)
                yield _event(delta)
                await asyncio.sleep(0)
            if reply.breaks:
                return
            yield _event({}, reply.finish)
            usage = {"prompt_tokens": 7, "completion_tokens": reply.tokens, "total_tokens": 7 + reply.tokens}
            yield _line({"choices": [], "usage": usage})
            yield "data: [DONE]\n\n"
        finally:
            self.running -= 1


def _event(delta: dict[str, str], finish: str | None = None) -> str:
    return _line({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _line(item: dict[str, Any]) -> str:
    return f"data: {json.dumps(item)}\n\n"


@contextlib.contextmanager
def fake_server() -> Iterator[FakeServer]:
    found = FakeServer()
    server = uvicorn.Server(uvicorn.Config(found.app(), port=0, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        thread.join(0.01)
        assert thread.is_alive(), "the server did not start"
    host, port = server.servers[0].sockets[0].getsockname()[:2]
    found.url = f"http://{host}:{port}"
    try:
        yield found
    finally:
        for reply in found.replies:
            reply.release()
        server.should_exit = True
        thread.join()
