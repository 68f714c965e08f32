"""What of Ollama's API there is."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from llm_runner import Model, __version__
from llm_server.engine.pool import ModelPool, ServedModel
from llm_server.ollama.embed import EmbedRequest, OldEmbedRequest, embed, old_embed
from llm_server.ollama.replies import chat, generate
from llm_server.ollama.request import GenerateRequest, OllamaChatRequest
from llm_server.web.bodies import Fields, read_request
from llm_server.web.endpoints import Endpoint


class ShowRequest(Fields):
    model: str
    verbose: bool | None = None


async def tags(request: Request) -> Response:
    """Lists the models, in memory or not."""
    return JSONResponse({"models": [_entry(model) for model in request.app.state.models]})


async def running(request: Request) -> Response:
    """Lists the models in memory."""
    models: ModelPool = request.app.state.models
    found = [
        _entry(model) | {"expires_at": "0001-01-01T00:00:00Z", "size_vram": 0, "context_length": model.context_length}
        for model in models
        if model.engine is not None
    ]
    return JSONResponse({"models": found})


async def show(request: Request) -> Response:
    """Describes a model. Errors: 404 for another name."""
    asked = await read_request(request, ShowRequest)
    model = request.app.state.models.find(asked.model)
    capabilities = ["completion"] if model.generates else []
    if model.embeds:
        capabilities.append("embedding")
    if "tools" in model.chat_template:
        capabilities.append("tools")
    if "enable_thinking" in model.chat_template:
        capabilities.append("thinking")
    family = str(model.about.get("model_type", ""))
    about = {"general.architecture": family, f"{family}.context_length": model.context_length}
    return JSONResponse(
        {"modelfile": "", "parameters": "", "template": model.chat_template, "details": _details(model),
         "model_info": about, "capabilities": capabilities, "modified_at": _modified(model)}
    )  # fmt: skip


async def version(request: Request) -> Response:
    """Says which version of Mote this is."""
    return JSONResponse({"version": __version__})


def _entry(model: ServedModel) -> dict[str, Any]:
    source = "" if isinstance(model.source, Model) else str(model.source)
    # Of name, size and time: to read gigabytes for a digest would take longer than to answer.
    digest = hashlib.sha256(f"{source} {model.file_bytes} {model.modified}".encode()).hexdigest()
    return {
        "name": model.name, "model": model.name, "modified_at": _modified(model), "size": model.file_bytes,
        "digest": digest, "details": _details(model),
    }  # fmt: skip


def _details(model: ServedModel) -> dict[str, Any]:
    family = str(model.about.get("model_type", ""))
    return {
        "parent_model": "", "format": "mote", "family": family, "families": [family], "parameter_size": "",
        "quantization_level": str(model.about.get("recipe", "")).partition(" ")[0],
    }  # fmt: skip


def _modified(model: ServedModel) -> str:
    return datetime.fromtimestamp(model.modified, UTC).isoformat().replace("+00:00", "Z")


ENDPOINTS = [
    Endpoint("Ollama", "POST", "/api/chat", chat, "replies to a conversation", OllamaChatRequest),
    Endpoint("Ollama", "POST", "/api/generate", generate, "replies to a text, or continues it", GenerateRequest),
    Endpoint("Ollama", "GET", "/api/tags", tags, "lists the models"),
    Endpoint("Ollama", "GET", "/api/ps", running, "lists the models in memory"),
    Endpoint("Ollama", "POST", "/api/show", show, "describes a model", ShowRequest),
    Endpoint("Ollama", "GET", "/api/version", version, "says which version of Mote this is"),
    Endpoint("Ollama", "POST", "/api/embed", embed, "gives the vectors of texts", EmbedRequest),
    Endpoint("Ollama", "POST", "/api/embeddings", old_embed, "gives the vector of a text", OldEmbedRequest),
]
