"""Errors, in the words of the API that a path belongs to; OpenAI's unless it is another's."""

from __future__ import annotations

import logging
import re
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from llm_runner import ArgumentError, ContextFullError, MoteError, ResourceError, TemplateError

log = logging.getLogger("llm_server")


class ApiError(Exception):
    """What a client is told. param: the field of the request that is at fault."""

    def __init__(
        self,
        status: int,
        message: str,
        param: str | None = None,
        code: str | None = None,
        retry_after: int | None = None,
    ):
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code
        self.retry_after = retry_after

    def response(self, path: str) -> Response:
        """Returns the answer to a request for a path."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse(error_body(self, path), self.status, headers)


def error_body(error: ApiError, path: str) -> dict[str, Any]:
    """Returns an error as the API of a path writes it."""
    if path.startswith("/api/"):
        return {"error": str(error)}
    if path.startswith("/v1/messages"):
        return {"type": "error", "error": {"type": _anthropic_type(error.status), "message": str(error)}}
    kind = "invalid_request_error" if error.status < 500 else "server_error"
    return {"error": {"message": str(error), "type": kind, "param": error.param, "code": error.code}}


def _anthropic_type(status: int) -> str:
    named = {401: "authentication_error", 403: "permission_error", 404: "not_found_error",
             413: "request_too_large", 503: "overloaded_error"}  # fmt: skip
    return named.get(status, "invalid_request_error" if status < 500 else "api_error")


def invalid(param: str, message: str, code: str | None = None) -> ApiError:
    """Makes the error for a field with a value that is not accepted."""
    return ApiError(400, f"{param}: {message}", param, code)


def as_api_error(error: Exception) -> ApiError:
    """Says what went wrong in the terms of the API; defects are logged, and their text stays here."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ContextFullError):
        return ApiError(400, str(error), "messages", "context_length_exceeded")
    if isinstance(error, TemplateError):
        return ApiError(400, f"the chat template refuses the conversation: {error}", "messages")
    if isinstance(error, ArgumentError):
        return ApiError(400, str(error), _field_of(str(error)))
    if isinstance(error, ResourceError):
        return ApiError(503, str(error), code="out_of_memory", retry_after=5)
    if isinstance(error, HTTPException):
        return ApiError(error.status_code, error.detail)
    log.error("a request failed", exc_info=error)
    return ApiError(500, str(error) if isinstance(error, MoteError) else "internal error")


def _field_of(sentence: str) -> str | None:
    """Returns the part of a conversation that a sentence of the runner begins with."""
    found = re.match(r"(messages|tools|tool_choice|response_format)[\w.\[\]]*(?=:| =)", sentence)
    return found and found[0]


async def on_error(request: Request, error: Exception) -> Response:
    """Starlette's handler of exceptions."""
    return as_api_error(error).response(request.url.path)
