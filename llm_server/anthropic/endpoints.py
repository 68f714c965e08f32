"""POST /v1/messages and /v1/messages/count_tokens."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from llm_server.anthropic.request import CountTokensRequest, MessagesRequest
from llm_server.anthropic.writer import MessageWriter
from llm_server.chat.turn import begin_chat, lease, render
from llm_server.web.bodies import read_request
from llm_server.web.endpoints import Endpoint
from llm_server.web.streaming import NAMED_EVENTS, respond, respond_whole


async def messages(request: Request) -> Response:
    """Answers as a whole or as server-sent events."""
    asked = await read_request(request, MessagesRequest)
    writer = MessageWriter(await begin_chat(request, asked.chat()))
    if asked.stream:
        return await respond(request, writer.events(), NAMED_EVENTS)
    return await respond_whole(request, writer.whole())


async def count_tokens(request: Request) -> Response:
    """Answers with the length of the prompt."""
    asked = await read_request(request, CountTokensRequest)
    engine = await lease(request, asked.model)
    conversation = await render(request, engine, asked.chat())
    return JSONResponse({"input_tokens": len(conversation.ids)})


ENDPOINTS = [
    Endpoint("Anthropic", "POST", "/v1/messages", messages, "replies to a conversation", MessagesRequest),
    Endpoint(
        "Anthropic", "POST", "/v1/messages/count_tokens", count_tokens, "counts a prompt's tokens", CountTokensRequest
    ),
]
