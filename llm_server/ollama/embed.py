"""POST /api/embed, and /api/embeddings, which came before it."""

from __future__ import annotations

import time
from typing import Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from llm_server.chat.options import PositiveCount
from llm_server.chat.turn import lease
from llm_server.openai.embeddings import MAX_INPUTS
from llm_server.web.bodies import Fields, read_request
from llm_server.web.errors import invalid
from llm_server.web.exchange import exchange_of


class EmbedRequest(Fields):
    model: str
    input: str | list[str]
    truncate: bool | None = Field(None, description="cut off the end of texts that are too long; absent: true")
    dimensions: PositiveCount | None = None
    options: Any = Field(None, description="changes nothing")
    keep_alive: Any = Field(None, description="changes nothing")


class OldEmbedRequest(Fields):
    model: str
    prompt: str
    options: Any = Field(None, description="changes nothing")
    keep_alive: Any = Field(None, description="changes nothing")


async def embed(request: Request) -> Response:
    """Answers with a vector of length 1 for each text."""
    started = time.monotonic_ns()
    asked = await read_request(request, EmbedRequest)
    inputs = [asked.input] if isinstance(asked.input, str) else list(asked.input)
    if len(inputs) > MAX_INPUTS:
        raise invalid("input", f"{len(inputs)} texts: must be at most {MAX_INPUTS}")
    engine = await lease(request, asked.model)
    loaded = time.monotonic_ns()
    found = await engine.vectors.embed(inputs, dimensions=asked.dimensions, truncate=asked.truncate is not False)
    tokens = exchange_of(request).prompt_tokens = sum(found.num_tokens)
    return JSONResponse(
        {"model": asked.model, "embeddings": found.vectors.tolist(), "total_duration": time.monotonic_ns() - started,
         "load_duration": loaded - started, "prompt_eval_count": tokens}
    )  # fmt: skip


async def old_embed(request: Request) -> Response:
    """Answers with the vector of a text as the pooling gives it, of any length."""
    asked = await read_request(request, OldEmbedRequest)
    engine = await lease(request, asked.model)
    found = await engine.vectors.embed([asked.prompt], normalize=False)
    exchange_of(request).prompt_tokens = sum(found.num_tokens)
    return JSONResponse({"embedding": found.vectors[0].tolist()})
