"""GET /openapi.json and /docs: what the endpoints take, written down from their models of pydantic."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from typing import Any

from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from llm_runner import __version__
from llm_server.web.endpoints import Endpoint

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "table{border-collapse:collapse;width:100%}td{border-top:1px solid #8884;padding:.25rem .5rem;vertical-align:top}"
    "td:first-child{width:16rem}code{font-family:ui-monospace,monospace}summary{cursor:pointer;padding:.25rem 0}"
)
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
PAGE_HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


class Description:
    """The endpoints of a server as an OpenAPI document and as a page that loads nothing."""

    def __init__(self, endpoints: Sequence[Endpoint], has_key: bool):
        self.document = _document(endpoints, has_key)
        self._page = _page(self.document)

    async def openapi(self, request: Request) -> Response:
        """Answers with the document."""
        return JSONResponse(self.document)

    async def docs(self, request: Request) -> Response:
        """Answers with the page."""
        return Response(self._page, headers=PAGE_HEADERS, media_type="text/html")


def _document(endpoints: Sequence[Endpoint], has_key: bool) -> dict[str, Any]:
    bodies = {endpoint.body for endpoint in endpoints if endpoint.body is not None}
    ordered = sorted(bodies, key=lambda kind: kind.__name__)
    _, schemas = models_json_schema(
        [(kind, "validation") for kind in ordered], ref_template="#/components/schemas/{model}"
    )
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        path = re.sub(r"{(\w+):path}", r"{\1}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, path)
    components: dict[str, Any] = {"schemas": schemas.get("$defs", {})}
    document = {
        "openapi": "3.1.0", "info": {"title": "mote serve", "version": __version__}, "paths": paths,
        "components": components,
    }  # fmt: skip
    if has_key:
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"key": []}]
    return document


def _operation(endpoint: Endpoint, path: str) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": endpoint.about, "tags": [endpoint.api], "responses": {"200": {"description": "the answer"}},
        "operationId": re.sub(r"\W+", "_", f"{endpoint.method.lower()}{path}").strip("_"),
    }  # fmt: skip
    names = re.findall(r"{(\w+)}", path)
    if names:
        schema = {"type": "string"}
        operation["parameters"] = [{"name": name, "in": "path", "required": True, "schema": schema} for name in names]
    if endpoint.body is not None:
        schema = {"$ref": f"#/components/schemas/{endpoint.body.__name__}"}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return operation


def _page(document: dict[str, Any]) -> str:
    schemas = document["components"]["schemas"]
    by_api: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            by_api.setdefault(operation["tags"][0], []).append(_entry(path, method, operation, schemas))
    sections = "".join(f"<h2>{html.escape(api)}</h2>{''.join(entries)}" for api, entries in by_api.items())
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>mote serve</title><style>{STYLE}</style>'
        f'<h1>mote serve</h1><p>Version {__version__}. <a href="/openapi.json">openapi.json</a></p>{sections}</html>'
    )


def _entry(path: str, method: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    head = f"<code>{method.upper()} {html.escape(path)}</code> {html.escape(operation['summary'])}"
    if "requestBody" not in operation:
        return f"<p>{head}</p>"
    name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    schema = schemas[name]
    rows = "".join(
        f"<tr><td><code>{html.escape(field)}</code>{' (required)' if field in schema.get('required', ()) else ''}</td>"
        f"<td><code>{html.escape(_type(about))}</code></td><td>{html.escape(about.get('description', ''))}</td></tr>"
        for field, about in schema["properties"].items()
    )
    return f"<details><summary>{head}</summary><table>{rows}</table></details>"


def _type(schema: dict[str, Any]) -> str:
    """Returns a schema in few words."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_type(branch) for branch in schema["anyOf"] if branch.get("type") != "null")
    if "enum" in schema or "const" in schema:
        return " or ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    bounds = [f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return " ".join([schema.get("type", "any"), *bounds])
