"""POST /v1/embeddings."""

from __future__ import annotations

import base64
from typing import Any, Literal

import numpy as np
from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from llm_runner import ContextFullError
from llm_server.chat.options import PositiveCount
from llm_server.chat.turn import lease
from llm_server.web.bodies import Fields, read_request
from llm_server.web.errors import invalid
from llm_server.web.exchange import exchange_of

MAX_INPUTS = 2048  # as OpenAI's


class EmbeddingRequest(Fields):
    model: str | None = Field(None, description="absent: the first of the server")
    input: str | list[str] | list[int] | list[list[int]]
    dimensions: PositiveCount | None = None
    encoding_format: Literal["float", "base64"] | None = None
    prompt_name: str | None = Field(None, description="of the model's prompts, such as query; not OpenAI's")
    prompt: str | None = Field(None, description="put before each text; not OpenAI's")
    truncate: bool | None = Field(None, description="cut off the end of texts that are too long; not OpenAI's")
    user: Any = Field(None, description="changes nothing")


async def embeddings(request: Request) -> Response:
    """Answers with a vector of length 1 for each input."""
    asked = await read_request(request, EmbeddingRequest)
    inputs = _inputs(asked)
    engine = await lease(request, asked.model)
    try:
        found = await engine.vectors.embed(
            inputs, dimensions=asked.dimensions, prompt_name=asked.prompt_name, prompt=asked.prompt,
            truncate=bool(asked.truncate),
        )  # fmt: skip
    except ContextFullError as error:
        raise invalid("input", str(error), "context_length_exceeded") from None
    tokens = exchange_of(request).prompt_tokens = sum(found.num_tokens)
    data = [
        {"object": "embedding", "index": index, "embedding": _encoded(vector, asked.encoding_format)}
        for index, vector in enumerate(found.vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return JSONResponse({"object": "list", "data": data, "model": engine.name, "usage": usage})


def _inputs(asked: EmbeddingRequest) -> list[str | list[int]]:
    given = asked.input
    is_one = isinstance(given, str) or (bool(given) and isinstance(given[0], int))
    inputs: list[Any] = [given] if is_one else list(given)
    if not 1 <= len(inputs) <= MAX_INPUTS:
        raise invalid("input", f"{len(inputs)} texts: must be 1..{MAX_INPUTS}")
    return inputs


def _encoded(vector: np.ndarray, encoding: str | None) -> list[float] | str:
    if encoding == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return vector.tolist()
