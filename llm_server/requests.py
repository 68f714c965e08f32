"""What requests may say: OpenAI's fields with their limits, and the runner's options; other fields are ignored."""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from starlette.requests import Request

from llm_runner import ArgumentError, check_options, describe_options
from llm_server.errors import ApiError, invalid

MAX_CHOICES = 16
MAX_STOPS = 64

Penalty = Annotated[float, Field(ge=-2, le=2)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]

# Of a generation's options, those that requests have by another name or that are the server's own.
NOT_FIELDS = {
    "max_new_tokens", "min_new_tokens", "stop_strings", "logprobs", "top_logprobs", "max_time", "skip_special_tokens",
    "skip_eos",
}  # fmt: skip
OPTIONS = [
    option["name"]
    for option in describe_options()
    if option["scope"] == "generation" and option["name"] not in NOT_FIELDS
]


def _checked(name: str) -> AfterValidator:
    """Returns a validator that asks the runner what it thinks of an option's value."""

    def check(value: Any) -> Any:
        try:
            check_options({name: value}, "generation")
        except ArgumentError as error:
            raise PydanticCustomError("option", "{sentence}", {"sentence": str(error)}) from None
        return value

    return AfterValidator(check)


class Fields(BaseModel):
    """null is as absent."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)


OptionFields = create_model(
    "OptionFields", __base__=Fields, **{name: (Annotated[Any, _checked(name)], None) for name in OPTIONS}
)


class StreamOptions(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    include_usage: bool | None = None


class SamplingRequest(OptionFields):
    """What chats and completions have in common: the runner's options, of which OpenAI limits some, and more."""

    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    stop: str | list[str] | None = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**64 - 1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    logit_bias: Annotated[dict[str, Annotated[float, Field(ge=-100, le=100)]] | None, _checked("logit_bias")] = None
    min_tokens: Count | None = None  # not OpenAI's

    @field_validator("stop")
    @classmethod
    def _stops(cls, stop: str | list[str] | None) -> str | list[str] | None:
        if isinstance(stop, list) and len(stop) > MAX_STOPS:
            raise ValueError(f"has {len(stop)} strings: at most {MAX_STOPS} are accepted")
        return stop

    @model_validator(mode="after")
    def _stream_options_need_a_stream(self):
        if self.stream_options is not None and not self.stream:
            raise ValueError("stream_options is only accepted with stream = true")
        return self

    def generation_options(self, choice: int) -> dict[str, Any]:
        """Returns the options of `Session.generate` for one of n choices."""
        options = {name: getattr(self, name) for name in OPTIONS}
        options |= {"min_new_tokens": self.min_tokens, "max_new_tokens": self.most_tokens()}
        options |= {"stop_strings": self._stop_strings()}
        if self.seed is not None:
            options["seed"] = (self.seed + choice) % 2**64
        return {name: value for name, value in options.items() if value is not None}

    def most_tokens(self) -> int:
        """Returns how many tokens a choice may have; 0: until the context is full."""
        return self.max_tokens or 0

    def _stop_strings(self) -> list[str]:
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        if "" in stops:
            raise invalid("stop", "a stop string is empty: must have at least one character")
        return stops


class ChatRequest(SamplingRequest):
    messages: Annotated[list[dict[str, Any]], Field(min_length=1)]
    max_completion_tokens: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    response_format: dict[str, Any] | None = None
    reasoning_effort: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    continue_final_message: bool | None = None
    functions: Any = None
    function_call: Any = None

    def most_tokens(self) -> int:
        return self.max_completion_tokens or self.max_tokens or 0


class CompletionRequest(SamplingRequest):
    max_tokens: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None  # 0: the prompt is only echoed
    prompt: str | list[str] | list[int] | list[list[int]]
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: bool | None = None
    suffix: str | None = None
    best_of: int | None = None


T = TypeVar("T", bound=BaseModel)


async def read_request(request: Request, kind: type[T]) -> T:
    """Reads a body of JSON. Errors: ApiError naming the field."""
    body = await request.body()
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ApiError(400, "the body has half of a surrogate pair, which is no text") from None
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ApiError(400, f"the body is not valid JSON: {reason}") from None
    if not isinstance(value, dict):
        raise ApiError(400, "the body must be a JSON object")
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise _first(error) from None
    except RecursionError:
        raise ApiError(400, "the body is nested too deeply") from None


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
