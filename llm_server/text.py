"""POST /tokenize and /detokenize, in the shapes of vLLM and of llama.cpp."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from llm_server.chat.requests import ChatRequest
from llm_server.chat.turn import lease, render
from llm_server.web.bodies import Fields, checked_fields, read_object
from llm_server.web.errors import invalid

TokenId = Annotated[int, Field(ge=0, le=2**31 - 1)]


class TokenizeRequest(Fields):
    """One of prompt (vLLM), content (llama.cpp) and, as a chat, messages (vLLM)."""

    model: str | None = None
    prompt: str | None = None
    content: str | None = None
    messages: Annotated[list[dict[str, Any]], Field(min_length=1)] | None = None
    tools: list[dict[str, Any]] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    continue_final_message: bool | None = None
    add_special_tokens: bool | None = Field(None, description="with prompt; absent: true")
    return_token_strs: bool | None = Field(None, description="with prompt or messages")
    add_special: bool | None = Field(None, description="with content; absent: false")
    parse_special: bool | None = Field(None, description="with content; absent: true")
    with_pieces: bool | None = Field(None, description="with content: tokens are objects with id and piece")


class DetokenizeRequest(Fields):
    model: str | None = None
    tokens: list[TokenId]


async def tokenize(request: Request) -> Response:
    """Answers with token ids."""
    asked = checked_fields(request, await read_object(request), TokenizeRequest)
    given = [name for name in ("prompt", "content", "messages") if getattr(asked, name) is not None]
    if len(given) != 1:
        raise invalid("prompt", f"{' and '.join(given) or 'nothing'}: exactly one of prompt, content and messages")
    engine = await lease(request, asked.model)
    model = engine.model
    if asked.content is not None:
        parse = asked.parse_special is not False
        ids = await asyncio.to_thread(model.tokenize, asked.content, bool(asked.add_special), parse)
        tokens = [{"id": id, "piece": engine.token_text(id)} for id in ids] if asked.with_pieces else ids
        return JSONResponse({"tokens": tokens})
    if asked.prompt is not None:
        ids = await asyncio.to_thread(model.tokenize, asked.prompt, asked.add_special_tokens is not False)
    else:
        names = ("messages", "tools", "chat_template_kwargs", "continue_final_message")
        chat = ChatRequest.model_construct(**{name: getattr(asked, name) for name in names})
        ids = (await render(request, engine, chat)).ids
    strings = [engine.token_text(id) for id in ids] if asked.return_token_strs else None
    answer = {"count": len(ids), "max_model_len": engine.context_length, "tokens": ids, "token_strs": strings}
    return JSONResponse(answer)


async def detokenize(request: Request) -> Response:
    """Answers with a text, as vLLM and as llama.cpp call it."""
    asked = checked_fields(request, await read_object(request), DetokenizeRequest)
    engine = await lease(request, asked.model)
    engine.check_ids(asked.tokens, "tokens")
    text = await asyncio.to_thread(engine.model.detokenize, asked.tokens)
    return JSONResponse({"prompt": text, "content": text})
