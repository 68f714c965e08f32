"""What is checked before a request is looked at: who asks, from where, and how much it sends."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from llm_server.web.errors import ApiError


@dataclass(frozen=True)
class Limits:
    """max_body_bytes: of a request   body_seconds: in which it must arrive   header_bytes, header_seconds: likewise
    keep_alive_seconds: between two requests of a connection   max_connections: open at a time, idle ones included
    """

    max_body_bytes: int = 4 * 2**20
    body_seconds: float = 30.0
    header_bytes: int = 32 * 2**10
    header_seconds: float = 10.0
    keep_alive_seconds: float = 75.0  # more than clients keep idle connections, or both sides end them at once
    max_connections: int = 1024


class OriginGuard:
    """Refuses names that are not this server's (DNS rebinding) and pages of other sites.

    allowed_hosts: names beside localhost and addresses   allowed_origins: such as "http://localhost:3000", or "*"
    """

    def __init__(self, app: ASGIApp, allowed_hosts: Iterable[str] = (), allowed_origins: Iterable[str] = ()):
        self._app = app
        self._hosts = {"localhost", *(host.lower() for host in allowed_hosts)}
        self._origins = set(allowed_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        error = self._refusal(Headers(scope=scope))
        return await (self._app if error is None else error.response(scope["path"]))(scope, receive, send)

    def _refusal(self, headers: Headers) -> ApiError | None:
        host = headers.get("host", "")
        if not self._is_ours(host):
            text = f"the Host header {host[:100]!r} is not a name of this server: start it with --allow-host"
            return ApiError(403, text, code="host_not_allowed")
        origin = headers.get("origin")
        if origin is None or origin in self._origins or "*" in self._origins:
            return None
        if origin != "null" and origin.partition("://")[2].lower() == host.lower():
            return None
        text = f"pages of {origin[:100]!r} may not use this server: start it with --allow-origin"
        return ApiError(403, text, code="origin_not_allowed")

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        # An address cannot be rebound.
        return name in self._hosts or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class KeyGuard:
    """Asks for the API key, in constant time, everywhere but on open paths.

    It comes as a bearer token or, as Anthropic's clients send it, in x-api-key.
    """

    def __init__(self, app: ASGIApp, api_key: str, open_paths: Iterable[str] = ()):
        self._app = app
        self._expected = api_key.encode()
        self._open = frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in self._open:
            headers = Headers(scope=scope)
            kind, _, token = headers.get("authorization", "").partition(" ")
            given = token if kind.lower() == "bearer" else headers.get("x-api-key", "")
            if not hmac.compare_digest(given.encode("latin-1"), self._expected):
                text = "the API key is missing or wrong: send the header Authorization: Bearer KEY"
                error = ApiError(401, text, code="invalid_api_key")
                return await error.response(scope["path"])(scope, receive, send)
        return await self._app(scope, receive, send)


class SizeGuard:
    """Bounds headers and body of a request, however it is sent, and the time that the body takes to arrive."""

    def __init__(self, app: ASGIApp, limits: Limits):
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        if sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > self._limits.header_bytes:
            error = ApiError(431, f"the headers are too large: at most {self._limits.header_bytes} bytes are accepted")
            return await error.response(scope["path"])(scope, receive, send)
        headers = Headers(scope=scope)
        if headers.get("content-encoding", "identity").lower() != "identity":
            error = ApiError(415, "a body with a Content-Encoding is not accepted: send it as it is")
            return await error.response(scope["path"])(scope, receive, send)
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length[:20]) > self._limits.max_body_bytes:
            return await self._too_large().response(scope["path"])(scope, receive, send)
        return await self._app(scope, _Bounded(receive, self._limits, self._too_large()), send)

    def _too_large(self) -> ApiError:
        return ApiError(413, f"the body is too large: at most {self._limits.max_body_bytes} bytes are accepted")


class _Bounded:
    """A receive that counts. What it raises comes out where the body is read, which makes it the answer."""

    def __init__(self, receive: Receive, limits: Limits, too_large: ApiError):
        self._receive = receive
        self._room = limits.max_body_bytes
        self._too_large = too_large
        self._deadline = asyncio.get_running_loop().time() + limits.body_seconds
        self._is_complete = False

    async def __call__(self) -> Message:
        if self._is_complete:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise ApiError(408, "the body did not arrive in time") from None
        self._room -= len(message.get("body", b""))
        self._is_complete = not message.get("more_body", False)
        if self._room < 0:
            raise self._too_large
        return message
