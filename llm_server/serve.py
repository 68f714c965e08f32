"""The process: a socket, and the application behind it until Ctrl-C."""

from __future__ import annotations

import contextlib
import ipaddress
import resource
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from llm_runner import ArgumentError, Model
from llm_server.app import ServerOptions, create_app
from llm_server.web.connections import TimedProtocol
from llm_server.web.guard import Limits

SPARE_DESCRIPTORS = 256  # beside one a connection


def serve(
    models: Mapping[str, str | Path | Model],
    options: ServerOptions,
    host: str = "127.0.0.1",
    port: int = 8080,
    on_listening: Callable[[str, Starlette], None] = lambda url, app: None,
) -> None:
    """Serves models by name until SIGINT or SIGTERM; generations under way are then given 3 seconds.

    port: 0: any that is free   on_listening: called with the address, such as "http://127.0.0.1:8080", and the
    application
    Errors: ArgumentError if the address cannot be listened at; those of `create_app`
    """
    with listen(host, port, options.limits.max_connections) as listening:
        app = create_app(models, options)
        _allow_descriptors(options.limits.max_connections + SPARE_DESCRIPTORS)
        address, actual_port = listening.getsockname()[:2]
        on_listening(f"http://{f'[{address}]' if ':' in address else address}:{actual_port}", app)
        uvicorn_server(app, options.limits).run(sockets=[listening])


def uvicorn_server(app: Starlette, limits: Limits) -> uvicorn.Server:
    """Returns the server of an application, which `run` or `serve` starts."""
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, proxy_headers=False, lifespan="on",
        ws="none", http=type("Protocol", (TimedProtocol,), {"header_seconds": limits.header_seconds}),
        h11_max_incomplete_event_size=limits.header_bytes, limit_concurrency=limits.max_connections,
        timeout_keep_alive=limits.keep_alive_seconds, timeout_graceful_shutdown=3,
    )  # fmt: skip
    return uvicorn.Server(config)


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _allow_descriptors(count: int) -> None:
    """Raises the process's limit of open files as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def listen(host: str, port: int, backlog: int = 128) -> socket.socket:
    """Returns a socket at an address. port: 0: any that is free   backlog: clients that wait for the server's thread

    Errors: ArgumentError
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(backlog)  # from here on clients wait instead of being refused
    except (OSError, OverflowError) as error:
        raise ArgumentError(f"--host {host} --port {port}: cannot be listened at: {error}") from None
    return listening
