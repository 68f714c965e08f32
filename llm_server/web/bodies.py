"""Bodies of requests: JSON, checked against a model of pydantic; what it does not know is said, not swallowed."""

from __future__ import annotations

import json
import logging
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request

from llm_server.web.errors import ApiError, invalid
from llm_server.web.exchange import exchange_of

MAX_DEPTH = 128  # of lists and objects in each other

log = logging.getLogger("llm_server")


class Fields(BaseModel):
    """null is as absent. Fields that a class does not declare are kept, to be named in a warning."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)

    def without_effect(self) -> list[str]:
        """Returns the declared fields whose value asks for what the server does not do, and may do without."""
        return []


T = TypeVar("T", bound=Fields)


async def read_request(request: Request, kind: type[T]) -> T:
    """Reads a body of JSON. Errors: ApiError naming the field."""
    return checked_fields(request, await read_object(request), kind)


async def read_object(request: Request) -> dict[str, Any]:
    """Reads a body that is a JSON object. Errors: ApiError."""
    body = await request.body()
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ApiError(400, f"the body is not valid JSON: {reason}") from None
    if not isinstance(value, dict):
        raise ApiError(400, "the body must be a JSON object")
    for name, item in value.items():
        if _is_deep(item):
            raise invalid(name[:60], f"lists and objects nest deeper than {MAX_DEPTH}", "nested_too_deeply")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ApiError(400, "the body has half of a surrogate pair, which is no text") from None
    return value


def checked_fields(request: Request, value: dict[str, Any], kind: type[T]) -> T:
    """Makes fields of an object; unknown ones are logged and named in a header, or refused with --strict.

    Errors: ApiError naming the field
    """
    try:
        fields = kind.model_validate(value)
    except ValidationError as error:
        raise _first(error) from None
    ignored = ignored_fields(fields)
    if ignored:
        if request.app.state.strict:
            raise invalid(ignored[0], "is not known or cannot be met here (--strict)", "unknown_field")
        exchange_of(request).ignored += ignored
        log.warning("%s: ignored fields: %s", request.url.path, ", ".join(repr(name[:60]) for name in ignored[:10]))
    return fields


def ignored_fields(fields: Fields, path: str = "") -> list[str]:
    """Returns the paths of given fields that change nothing."""
    found = [path + name for name, value in (fields.model_extra or {}).items() if value is not None]
    found += [path + name for name in fields.without_effect()]
    for name in type(fields).model_fields:
        value = getattr(fields, name)
        items = value if isinstance(value, list) else [value]
        for i, item in enumerate(items):
            if isinstance(item, Fields):
                found += ignored_fields(item, f"{path}{name}[{i}]." if isinstance(value, list) else f"{path}{name}.")
    return found


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for item in level
            if isinstance(item, (dict, list))
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def _first(error: ValidationError) -> ApiError:
    """Names the first field that is wrong, its value, and what would be accepted."""
    found = error.errors(include_url=False, include_context=False)[0]
    if not found["loc"]:
        return ApiError(400, found["msg"].removeprefix("Value error, "))
    # A union reports each of its members; their names stand between the fields.
    names = [part for part in found["loc"] if isinstance(part, int) or part.isidentifier() and part not in _UNION]
    path = str(names[0]) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in names[1:])
    if found["type"] == "missing":
        return invalid(path, "is required", "missing_required_parameter")
    if found["type"] == "option":
        return ApiError(400, found["msg"], path)
    value = json.dumps(found["input"], default=str)
    value = value if len(value) <= 60 else value[:57] + "..."
    return ApiError(400, f"{path} = {value}: {found['msg'].removeprefix('Value error, ')}", path)


_UNION = ("str", "int", "float", "bool")


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")
