"""The ASGI application: its routes and what guards them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from llm_runner import Model, MoteError
from llm_server.chat import chat_completions
from llm_server.completions import completions
from llm_server.engine import Engine
from llm_server.errors import ApiError, on_error
from llm_server.guard import KeyGuard, Limits, OriginGuard, SizeGuard
from llm_server.streaming import ClientGone

PAGE = {"/": ("index.html", "text/html"), "/chat.js": ("chat.js", "text/javascript"),
        "/chat.css": ("chat.css", "text/css")}  # fmt: skip
# The page runs what it brings and talks to its own server, nothing else.
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True)
class ServerOptions:
    """model_name: how requests name the model   parallel: requests that run side by side, each with caches of its own
    max_queue: requests that wait for them   timeout: seconds of waiting, and of a generation
    prefix_cache_bytes: what sessions have read and others may use, at most; 0: nothing is kept
    api_key: None: none is asked for   allowed_hosts, allowed_origins: as for `OriginGuard`
    session: options of `Model.session`
    """

    model_name: str
    parallel: int = 1
    max_queue: int = 16
    timeout: float = 600.0
    prefix_cache_bytes: int = 256 * 2**20
    api_key: str | None = None
    allowed_hosts: Sequence[str] = ()
    allowed_origins: Sequence[str] = ()
    page: bool = True
    limits: Limits = field(default_factory=Limits)
    session: dict[str, Any] = field(default_factory=dict)


def create_app(model: Model, options: ServerOptions) -> Starlette:
    """Makes the application of a model. Errors: ArgumentError naming the option of a session."""
    engine = Engine(
        model, options.model_name, options.parallel, options.max_queue, options.timeout, options.prefix_cache_bytes,
        **options.session,
    )  # fmt: skip
    routes = [
        Route("/health", health),
        Route("/v1/models", models),
        Route("/v1/models/{name:path}", one_model),
        Route("/v1/chat/completions", chat_completions, methods=["POST"]),
        Route("/v1/completions", completions, methods=["POST"]),
    ]
    if options.page:
        routes += [Route(path, _page(*content)) for path, content in PAGE.items()]
    middleware = [Middleware(OriginGuard, options.allowed_hosts, options.allowed_origins)]
    if options.allowed_origins:
        origins = list(options.allowed_origins)
        middleware.append(
            Middleware(CORSMiddleware, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["*"])
        )
    if options.api_key is not None:
        middleware.append(Middleware(KeyGuard, options.api_key))
    middleware.append(Middleware(SizeGuard, options.limits))
    handlers = {kind: on_error for kind in (ApiError, MoteError, HTTPException, Exception)} | {ClientGone: _gone}
    app = Starlette(routes=routes, middleware=middleware, exception_handlers=handlers, lifespan=_lifespan)
    app.state.engine = engine
    app.state.started = int(time.time())
    return app


@asynccontextmanager
async def _lifespan(app: Starlette):
    engine: Engine = app.state.engine
    # A request holds a thread while the model takes a step.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2 * engine.parallel + 8, "mote-serve"))
    yield
    engine.close()


async def health(request: Request) -> Response:
    """Says that the server lives, and how busy it is."""
    engine: Engine = request.app.state.engine
    return JSONResponse(
        {"status": "ok", "model": engine.name, "running": engine.num_running, "waiting": engine.num_waiting}
    )


async def models(request: Request) -> Response:
    """Lists the only model."""
    return JSONResponse({"object": "list", "data": [_model_json(request)]})


async def one_model(request: Request) -> Response:
    """Describes the model. Errors: 404 for another name."""
    request.app.state.engine.check_model(request.path_params["name"])
    return JSONResponse(_model_json(request))


def _model_json(request: Request) -> dict[str, Any]:
    engine: Engine = request.app.state.engine
    return {
        "id": engine.name, "object": "model", "created": request.app.state.started, "owned_by": "mote",
        "context_length": engine.context_length,
    }  # fmt: skip


def _page(name: str, media_type: str):
    content = (files("llm_server") / "page" / name).read_bytes()

    async def endpoint(request: Request) -> Response:
        return Response(content, headers=PAGE_HEADERS, media_type=media_type)

    return endpoint


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # nobody reads it
