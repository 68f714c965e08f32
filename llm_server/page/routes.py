"""The routes of the chat page: the files that scripts/build_page.sh makes of src/."""

from __future__ import annotations

import logging
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from llm_server.web.endpoints import Endpoint

BUNDLE = files("llm_server.page") / "dist"
NOT_BUILT = "The chat page is not built: run scripts/build_page.sh of Mote's checkout, then start the server again."
# The page runs what it brings and talks to its own server, nothing else.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
MEDIA_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "woff2": "font/woff2",
               "txt": "text/plain"}  # fmt: skip


def page_routes(bundle=BUNDLE) -> list[Route]:
    """Returns a route for each file of the bundle; of none, one that says how to build it, which the log says too."""
    if not (bundle / "index.html").is_file():
        logging.getLogger("llm_server").warning(NOT_BUILT)
        return [_route("/", f"<!doctype html><title>Mote</title><p>{NOT_BUILT}".encode(), "text/html", 503)]
    found = [(entry.name, entry.read_bytes()) for entry in bundle.iterdir() if entry.is_file()]
    return [
        _route("/" if name == "index.html" else f"/{name}", content, MEDIA_TYPES[name.rpartition(".")[2]])
        for name, content in found
    ]


def _route(path: str, content: bytes, media_type: str, status: int = 200) -> Route:
    async def endpoint(request: Request) -> Response:
        return Response(content, status, HEADERS, media_type)

    return Endpoint("Mote", "GET", path, endpoint, "").route()
