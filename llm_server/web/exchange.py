"""What happened to a request: its warnings, its figures, what it holds until it is answered."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

WARNING_HEADER = "Mote-Warning"
MAX_HEADER_FIELDS = 10

log = logging.getLogger("llm_server")
request_log = logging.getLogger("llm_server.requests")


@dataclass
class Exchange:
    """A request and its answer. first_token: seconds until the model wrote something"""

    method: str
    path: str
    started: float = field(default_factory=time.monotonic)
    route: str = "other"  # the path as it was registered
    model: str = ""
    status: int = 499  # nobody waited for the answer
    first_token: float | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    ignored: list[str] = field(default_factory=list)  # fields that change nothing
    at_end: list[Callable[[], object]] = field(default_factory=list)

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def on_token(self) -> None:
        """Counts a token of a reply."""
        if self.first_token is None:
            self.first_token = self.seconds()
        self.completion_tokens += 1

    def line(self) -> str:
        """Returns the line of the request log."""
        # A path is what anybody sends, line feeds included.
        path = json.dumps(self.path[:100])[1:-1]
        text = f"{self.method} {path} {self.status} {self.seconds() * 1000:.0f} ms"
        if self.model:
            text += f" {self.model}"
        if self.prompt_tokens:
            text += f" prompt {self.prompt_tokens} (cached {self.cached_tokens}) reply {self.completion_tokens}"
        if self.first_token is not None:
            text += f" first {self.first_token * 1000:.0f} ms"
        return text


def exchange_of(request: Request) -> Exchange:
    return request.scope["mote.exchange"]


class Exchanges:
    """Makes the exchange of every request, and ends it with a line of the log and `on_end`."""

    def __init__(self, app: ASGIApp, on_end: Callable[[Exchange], None]):
        self._app = app
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        exchange = scope["mote.exchange"] = Exchange(scope["method"], scope["path"])

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                if exchange.ignored:
                    MutableHeaders(scope=message)[WARNING_HEADER] = _warning(exchange.ignored)
            await send(message)

        try:
            await self._app(scope, receive, counted)
        except BaseException:
            exchange.status = max(exchange.status, 499)
            raise
        finally:
            for end in exchange.at_end:
                end()
            request_log.info("%s", exchange.line())
            self._on_end(exchange)


def _warning(fields: list[str]) -> str:
    names = [_header_text(name[:60]) for name in fields[:MAX_HEADER_FIELDS]]
    more = f" and {len(fields) - len(names)} more" if len(fields) > len(names) else ""
    return f"ignored fields: {', '.join(names)}{more}"


def _header_text(name: str) -> str:
    """Returns a name as a header may hold it: in quotes if it is no ordinary one."""
    if re.fullmatch(r"[\w.\[\]-]+", name, re.ASCII):
        return name
    return json.dumps(name).replace("\x7f", "\\u007f")
