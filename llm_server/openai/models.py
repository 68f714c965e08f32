"""GET /v1/models."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from llm_server.engine.pool import ServedModel


async def models(request: Request) -> Response:
    """Lists the models, in memory or not."""
    found = [_json(model, name) for model in request.app.state.models for name in (model.name, *model.adapters)]
    return JSONResponse({"object": "list", "data": found})


async def one_model(request: Request) -> Response:
    """Describes a model. Errors: 404 for another name."""
    name = request.path_params["name"]
    model: ServedModel = request.app.state.models.find(name)
    return JSONResponse(_json(model, name if name in model.adapters else model.name))


def _json(model: ServedModel, name: str) -> dict[str, Any]:
    of_adapter = {"parent": model.name} if name != model.name else {}
    return {
        "id": name, "object": "model", "created": int(model.modified), "owned_by": "mote",
        "context_length": model.context_length, "max_model_len": model.context_length,
        "loaded": model.engine is not None, "has_chat_template": bool(model.chat_template),
        **of_adapter,
    }  # fmt: skip
