"""GET /v1/models."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from llm_server.engine.pool import ServedModel


async def models(request: Request) -> Response:
    """Lists the models, in memory or not."""
    return JSONResponse({"object": "list", "data": [_json(model) for model in request.app.state.models]})


async def one_model(request: Request) -> Response:
    """Describes a model. Errors: 404 for another name."""
    return JSONResponse(_json(request.app.state.models.find(request.path_params["name"])))


def _json(model: ServedModel) -> dict[str, Any]:
    return {
        "id": model.name, "object": "model", "created": int(model.modified), "owned_by": "mote",
        "context_length": model.context_length, "max_model_len": model.context_length,
        "loaded": model.engine is not None, "has_chat_template": bool(model.chat_template),
    }  # fmt: skip
