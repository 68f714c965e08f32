"""What an API offers: its paths, and what their requests may say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from llm_server.web.bodies import Fields
from llm_server.web.errors import on_error
from llm_server.web.exchange import exchange_of
from llm_server.web.streaming import ClientGone


@dataclass(frozen=True)
class Endpoint:
    """api: of which it is part, for the page /docs   body: of its requests, if they have one"""

    api: str
    method: str
    path: str
    handler: Callable[[Request], Awaitable[Response]]
    about: str
    body: type[Fields] | None = None

    def route(self) -> Route:
        async def endpoint(request: Request) -> Response:
            exchange_of(request).route = self.path
            try:
                return await self.handler(request)
            except (ClientGone, ClientDisconnect):
                return Response(status_code=499)  # nobody reads it
            except Exception as error:
                return await on_error(request, error)

        return Route(self.path, endpoint, methods=[self.method])
