"""POST /v1/responses, and the responses that are kept."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from llm_server.chat.turn import begin_chat
from llm_server.openai.responses.request import ResponsesRequest
from llm_server.openai.responses.store import ResponseStore
from llm_server.openai.responses.writer import ResponseWriter
from llm_server.web.bodies import read_request
from llm_server.web.endpoints import Endpoint
from llm_server.web.streaming import NAMED_EVENTS, respond, respond_whole


def endpoints(store: ResponseStore) -> list[Endpoint]:
    """Returns the endpoints over a store."""
    return [
        Endpoint("OpenAI", "POST", "/v1/responses", _Responses(store).create, "replies to items", ResponsesRequest),
        Endpoint("OpenAI", "GET", "/v1/responses/{id}", _Responses(store).get, "gives a response that is kept"),
        Endpoint("OpenAI", "DELETE", "/v1/responses/{id}", _Responses(store).delete, "forgets a response"),
    ]


class _Responses:
    def __init__(self, store: ResponseStore):
        self._store = store

    async def create(self, request: Request) -> Response:
        asked = await read_request(request, ResponsesRequest)
        before = asked.previous_response_id
        earlier = self._store.get(before, "previous_response_id").messages if before is not None else []
        chat = asked.chat(earlier)
        writer = ResponseWriter(await begin_chat(request, chat), asked)
        # Instructions are of one request only.
        conversation = chat.messages[1:] if asked.instructions else chat.messages
        if asked.stream:
            return await respond(request, self._stream(writer, conversation), NAMED_EVENTS)
        return await respond_whole(request, self._whole(writer, conversation))

    async def get(self, request: Request) -> Response:
        return JSONResponse(self._store.get(request.path_params["id"]).response)

    async def delete(self, request: Request) -> Response:
        id = request.path_params["id"]
        self._store.remove(id)
        return JSONResponse({"id": id, "object": "response", "deleted": True})

    async def _whole(self, writer: ResponseWriter, conversation: list[dict[str, Any]]) -> dict[str, Any]:
        response = await writer.run()
        self._keep(writer, conversation)
        return response

    async def _stream(
        self, writer: ResponseWriter, conversation: list[dict[str, Any]]
    ) -> AsyncGenerator[dict[str, Any], None]:
        async with aclosing(writer.events()) as events:
            async for event in events:
                if event["type"] in ("response.completed", "response.incomplete"):
                    self._keep(writer, conversation)
                yield event

    def _keep(self, writer: ResponseWriter, conversation: list[dict[str, Any]]) -> None:
        if writer.asked.store is not False and writer.choice is not None:
            self._store.add(writer.response, [*conversation, writer.choice.message()])
