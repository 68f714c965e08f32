"""What requests may say, with their limits; fields that are not named here are ignored."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from starlette.requests import Request

from llm_server.errors import ApiError, invalid

MAX_CHOICES = 16
MAX_STOPS = 64

Penalty = Annotated[float, Field(ge=-2, le=2)]
Probability = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]


class StreamOptions(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    include_usage: bool | None = None


class SamplingRequest(BaseModel):
    """What chats and completions have in common; null is as absent."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)

    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    stop: str | list[str] | None = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**64 - 1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Probability | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    logit_bias: dict[str, Annotated[float, Field(ge=-100, le=100)]] | None = None
    # Not OpenAI's, but known from other servers.
    top_k: Count | None = None
    min_p: Probability | None = None
    typical_p: Annotated[float, Field(gt=0, le=1)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=100)] | None = None
    min_tokens: Count | None = None
    stop_token_ids: list[Count] | None = None
    ignore_eos: bool | None = None

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
        names = (
            "top_p", "presence_penalty", "frequency_penalty", "top_k", "min_p", "typical_p", "repetition_penalty",
            "stop_token_ids", "ignore_eos",
        )  # fmt: skip
        options = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        options |= {"min_new_tokens": self.min_tokens, "max_new_tokens": self.most_tokens()}
        if self.temperature == 0:
            options["do_sample"] = False
        elif self.temperature is not None:
            options["temperature"] = self.temperature
        if self.seed is not None:
            options["seed"] = (self.seed + choice) % 2**64
        if self.logit_bias:
            options["logit_bias"] = {_token_id(key): bias for key, bias in self.logit_bias.items()}
        return options

    def most_tokens(self) -> int:
        """Returns how many tokens a choice may have; 0: until the context is full."""
        return self.max_tokens or 0

    def stop_strings(self) -> list[str]:
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        if "" in stops:
            raise invalid("stop", "a stop string is empty: must have at least one character")
        return stops


class JsonSchema(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    name: str | None = None
    schema_: dict[str, Any] = Field(default_factory=dict, alias="schema")


class ResponseFormat(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class ChatRequest(SamplingRequest):
    messages: Annotated[list[dict[str, Any]], Field(min_length=1)]
    max_completion_tokens: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    response_format: ResponseFormat | None = None
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
    value = json.dumps(found["input"], default=str)
    value = value if len(value) <= 60 else value[:57] + "..."
    return ApiError(400, f"{path} = {value}: {found['msg'].removeprefix('Value error, ')}", path)


_UNION = ("str", "int", "float", "bool")


def _token_id(key: str) -> int:
    if not key.isascii() or not key.isdigit() or len(key) > 10:
        raise invalid("logit_bias", f"the key {key[:40]!r} must be a token id")
    return int(key)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")
