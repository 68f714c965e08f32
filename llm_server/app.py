"""The ASGI application: its routes and what guards them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from llm_runner import Model, __version__
from llm_server.anthropic.endpoints import ENDPOINTS as ANTHROPIC
from llm_server.engine.engine import EngineOptions
from llm_server.engine.pool import ModelPool, PoolOptions
from llm_server.ollama.endpoints import ENDPOINTS as OLLAMA
from llm_server.openai.endpoints import ENDPOINTS as OPENAI
from llm_server.openai.responses.endpoints import endpoints as responses
from llm_server.openai.responses.store import ResponseStore
from llm_server.page.routes import page_routes
from llm_server.text import DetokenizeRequest, TokenizeRequest, detokenize, tokenize
from llm_server.web.endpoints import Endpoint
from llm_server.web.errors import on_error
from llm_server.web.exchange import WARNING_HEADER, Exchanges
from llm_server.web.guard import KeyGuard, Limits, OriginGuard, SizeGuard
from llm_server.web.metrics import Metrics
from llm_server.web.openapi import Description

MAX_SPARE_THREADS = 64  # beside one for each request that the model works on


@dataclass(frozen=True)
class ServerOptions:
    """parallel: requests to a model that run side by side; None: as many as the memory has room for
    max_queue: requests that wait for them   timeout: seconds of waiting, and of a generation
    max_memory: bytes of the models in memory with their caches; None: most of what is available now
    prefix_cache_bytes: what sessions of a model have read and others may use, at most; 0: nothing is kept
    strict: unknown fields are errors   api_key: None: none is asked for
    allowed_hosts, allowed_origins: as for `OriginGuard`
    session, loading: options of `Model.session` and `Model.load`
    adapters: files that requests may name, each with its weight behind "=" unless that is 1
    """

    parallel: int | None = None
    max_queue: int = 512
    timeout: float = 600.0
    max_memory: int | None = None
    prefix_cache_bytes: int = 256 * 2**20
    strict: bool = False
    api_key: str | None = None
    allowed_hosts: Sequence[str] = ()
    allowed_origins: Sequence[str] = ()
    page: bool = True
    limits: Limits = field(default_factory=Limits)
    session: dict[str, Any] = field(default_factory=dict)
    loading: dict[str, Any] = field(default_factory=dict)
    adapters: Sequence[str] = ()


def create_app(models: Mapping[str, str | Path | Model], options: ServerOptions) -> Starlette:
    """Makes the application of models by name.

    Errors: ArgumentError naming an option, or the file that cannot be served; those of `Model.load`
    """
    of_engine = EngineOptions(options.max_queue, options.timeout, options.prefix_cache_bytes, options.session)
    pool = ModelPool(
        models, PoolOptions(options.max_memory, options.parallel, options.loading, of_engine, tuple(options.adapters))
    )
    metrics = Metrics(pool)
    endpoints = [
        *OPENAI,
        *responses(ResponseStore()),
        *ANTHROPIC,
        *OLLAMA,
        Endpoint("Mote", "POST", "/tokenize", tokenize, "gives the token ids of a text or a chat", TokenizeRequest),
        Endpoint("Mote", "POST", "/detokenize", detokenize, "gives the text of token ids", DetokenizeRequest),
        Endpoint("Mote", "GET", "/health", health, "says that the server lives, and how busy it is"),
        Endpoint("Mote", "GET", "/version", version, "says which version of Mote this is"),
        Endpoint("Mote", "GET", "/metrics", metrics.endpoint, "gives figures for Prometheus"),
    ]
    description = Description(endpoints, options.api_key is not None)
    open_routes = [
        Endpoint("Mote", "GET", "/openapi.json", description.openapi, "").route(),
        Endpoint("Mote", "GET", "/docs", description.docs, "").route(),
        *(page_routes() if options.page else ()),
    ]
    open_paths = {"/health", "/version", *(route.path for route in open_routes)}
    handlers = {HTTPException: on_error}  # of paths that are not there; endpoints have their own
    app = Starlette(
        routes=[endpoint.route() for endpoint in endpoints] + open_routes,
        middleware=_middleware(options, metrics, open_paths), exception_handlers=handlers, lifespan=_lifespan,
    )  # fmt: skip
    app.state.models = pool
    app.state.strict = options.strict
    return app


def _middleware(options: ServerOptions, metrics: Metrics, open_paths: set[str]) -> list[Middleware]:
    """The outermost first."""
    found = [Middleware(Exchanges, metrics.count)]
    found.append(Middleware(OriginGuard, options.allowed_hosts, options.allowed_origins))
    if options.allowed_origins:
        found.append(
            Middleware(
                CORSMiddleware, allow_origins=list(options.allowed_origins), allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["*"], expose_headers=[WARNING_HEADER],
            )
        )  # fmt: skip
    if options.api_key is not None:
        found.append(Middleware(KeyGuard, options.api_key, open_paths))
    return [*found, Middleware(SizeGuard, options.limits)]


@asynccontextmanager
async def _lifespan(app: Starlette):
    models: ModelPool = app.state.models
    # A request holds a thread while the model takes a step.
    most = sum(model.parallel for model in models) + MAX_SPARE_THREADS
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(most, "mote-serve"))
    yield
    models.close()


async def health(request: Request) -> Response:
    """Says that the server lives, and how busy it is."""
    models: ModelPool = request.app.state.models
    engines = [model.engine for model in models if model.engine is not None]
    return JSONResponse(
        {
            "status": "ok",
            "model": models.first.name,
            "running": sum(engine.num_running for engine in engines),
            "waiting": sum(engine.num_waiting for engine in engines),
        }
    )


async def version(request: Request) -> Response:
    """Says which version of Mote this is."""
    return JSONResponse({"version": __version__})
