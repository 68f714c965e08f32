"""What every request for text may say: OpenAI's fields with their limits, the runner's options, and constraints."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AfterValidator, Field, create_model, field_validator, model_validator
from pydantic_core import PydanticCustomError

from llm_runner import ArgumentError, check_options, describe_options
from llm_server.web.bodies import Fields
from llm_server.web.errors import invalid

MAX_CHOICES = 16
MAX_STOPS = 64

Penalty = Annotated[float, Field(ge=-2, le=2)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
PositiveCount = Annotated[int, Field(ge=1, le=2**31 - 1)]

# Of a generation's options, those that requests have by another name or that are the server's own.
NOT_FIELDS = {
    "max_new_tokens", "min_new_tokens", "stop_strings", "logprobs", "top_logprobs", "skip_special_tokens", "skip_eos",
}  # fmt: skip
CONSTRAINTS = {"json_schema", "regex", "grammar", "grammar_syntax", "json_whitespace"}
TABLE = [option for option in describe_options() if option["scope"] == "generation"]
OPTIONS = {option["name"]: option for option in TABLE if option["name"] not in NOT_FIELDS}
# Of options that requests have by another name.
FIELDS_OF = {"max_new_tokens": "max_tokens", "min_new_tokens": "min_tokens", "stop_strings": "stop"}
# Names of other software, and the runner's own where a field has another.
OTHER_NAMES = {
    other: FIELDS_OF.get(option["name"], option["name"])
    for option in TABLE
    for other in (option["name"], *option.get("other_names", ()))
    if other != FIELDS_OF.get(option["name"], option["name"])
}


def _checked(name: str) -> AfterValidator:
    """Returns a validator that asks the runner what it thinks of an option's value."""

    def check(value: Any) -> Any:
        try:
            check_options({name: value}, "generation")
        except ArgumentError as error:
            raise PydanticCustomError("option", "{sentence}", {"sentence": str(error)}) from None
        return value

    return AfterValidator(check)


def _field(option: dict[str, Any]) -> tuple[Any, Any]:
    description = f"{option['help']}: {option['accepted']}"
    return Annotated[Any, _checked(option["name"])], Field(None, description=description)


class OptionNames(Fields):
    """Takes an option by its other names too, where the class has no field of that name."""

    @model_validator(mode="before")
    @classmethod
    def _one_name(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        found = dict(values)
        for other, field in OTHER_NAMES.items():
            if other not in values or other in cls.model_fields or field not in cls.model_fields:
                continue
            if found.get(field) is not None and values[other] is not None:
                raise ValueError(f"{other} and {field} are the same option: only one of them can be given")
            value = found.pop(other)
            found[field] = found.get(field) if value is None else value
        return found


OptionFields = create_model(
    "OptionFields", __base__=OptionNames, **{name: _field(option) for name, option in OPTIONS.items()}
)


class StructuredOutputs(Fields):
    """vLLM's object: one of them."""

    json_: Any = Field(None, alias="json")
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None


class ConstraintFields(OptionFields):
    """Constraints by the names of vLLM, beside the runner's own (which are llama.cpp's too)."""

    guided_json: Any = Field(None, description="vLLM: json_schema")
    guided_regex: str | None = Field(None, description="vLLM: regex")
    guided_choice: list[str] | None = Field(None, description="vLLM: the reply is one of these texts")
    guided_grammar: str | None = Field(None, description="vLLM: grammar")
    structured_outputs: StructuredOutputs | None = None

    def constraint(self) -> tuple[str, dict[str, Any]] | None:
        """Returns the field of a constraint and the arguments of its `Grammar`.

        Errors: ApiError if there are several, or one that cannot be right
        """
        given = [(field, source) for field, source in self._constraints() if source is not None]
        if len(given) > 1:
            names = " and ".join(field for field, _ in given[:2])
            raise invalid(given[1][0], f"{names} both say what the reply must be: only one of them can be given")
        if self.grammar_syntax not in (None, "auto") and self.grammar is None:
            raise invalid("grammar_syntax", f"{json.dumps(self.grammar_syntax)}: needs a grammar")
        return given[0] if given else None

    def _constraints(self):
        whitespace = {"whitespace": self.json_whitespace or "flexible"}
        syntax = None if self.grammar_syntax in (None, "auto") else self.grammar_syntax
        yield "json_schema", _schema(self.json_schema, whitespace)
        yield "regex", _one("regex", self.regex)
        yield "grammar", None if self.grammar is None else {"grammar": self.grammar, "syntax": syntax}
        yield "guided_json", _schema(self.guided_json, whitespace)
        yield "guided_regex", _one("regex", self.guided_regex)
        yield "guided_choice", _choice("guided_choice", self.guided_choice)
        yield "guided_grammar", _one("grammar", self.guided_grammar)
        if (wanted := self.structured_outputs) is not None:
            yield "structured_outputs.json", _schema(wanted.json_, whitespace)
            yield "structured_outputs.regex", _one("regex", wanted.regex)
            yield "structured_outputs.choice", _choice("structured_outputs.choice", wanted.choice)
            yield "structured_outputs.grammar", _one("grammar", wanted.grammar)
            any_object = {"type": "object"} if wanted.json_object else None
            yield "structured_outputs.json_object", _schema(any_object, whitespace)


def _schema(schema: Any, whitespace: dict[str, str]) -> dict[str, Any] | None:
    if schema is None:
        return None
    return {"json_schema": schema if isinstance(schema, str) else json.dumps(schema)} | whitespace


def _one(name: str, text: str | None) -> dict[str, Any] | None:
    return None if text is None else {name: text}


def _choice(field: str, texts: list[str] | None) -> dict[str, Any] | None:
    """Returns a grammar whose texts are these."""
    if texts is None:
        return None
    if not texts or "" in texts:
        raise invalid(field, "must be a list of texts, none of them empty")
    return {"grammar": "root ::= " + " | ".join(map(_literal, texts)), "syntax": "gbnf"}


def _literal(text: str) -> str:
    escaped = "".join(f"\\x{ord(c):02x}" if c in '"\\' or ord(c) < 32 or ord(c) == 127 else c for c in text)
    return f'"{escaped}"'


class SamplingRequest(ConstraintFields):
    """What chats and completions have in common: the runner's options, of which OpenAI limits some, and more."""

    stop: str | list[str] | None = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**64 - 1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    logit_bias: Annotated[dict[str, Annotated[float, Field(ge=-100, le=100)]] | None, _checked("logit_bias")] = None
    min_tokens: Count | None = Field(None, description="min_new_tokens; not OpenAI's")
    adapters: list[str] | dict[str, Annotated[float, Field(allow_inf_nan=False)]] | None = Field(
        None, description="names of adapters, or an object of names and weights; absent: the model's name may be one"
    )

    @field_validator("stop")
    @classmethod
    def _stops(cls, stop: str | list[str] | None) -> str | list[str] | None:
        if isinstance(stop, list) and len(stop) > MAX_STOPS:
            raise ValueError(f"has {len(stop)} strings: at most {MAX_STOPS} are accepted")
        return stop

    def generation_options(self, choice: int) -> dict[str, Any]:
        """Returns the options of `Session.generate` for one of n choices, but for a constraint."""
        options = {name: getattr(self, name) for name in OPTIONS if name not in CONSTRAINTS}
        options |= {"min_new_tokens": self.min_tokens, "max_new_tokens": self.most_tokens()}
        options |= {"stop_strings": self._stop_strings()}
        if self.seed is not None:
            options["seed"] = (self.seed + choice) % 2**64
        return {name: value for name, value in options.items() if value is not None}

    def most_tokens(self) -> int:
        """Returns how many tokens a choice may have; 0: until the context is full."""
        return 0

    def most_seconds(self, limit: float) -> float:
        """Returns how long a choice may take. limit: the server's"""
        return min(self.max_time or limit, limit)

    def _stop_strings(self) -> list[str]:
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        if "" in stops:
            raise invalid("stop", "a stop string is empty: must have at least one character")
        return stops


class StreamOptions(Fields):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None  # padding against who counts bytes, which this server never adds


class OpenAIRequest(SamplingRequest):
    """What OpenAI's chats and completions have in common."""

    model: str | None = Field(None, description="absent: the first of the server")
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    max_tokens: PositiveCount | None = None
    user: Any = Field(None, description="changes nothing")
    metadata: Any = Field(None, description="changes nothing")
    safety_identifier: Any = Field(None, description="changes nothing")
    prompt_cache_key: Any = Field(None, description="changes nothing: what prompts share is found without it")
    prompt_cache_retention: Any = Field(None, description="changes nothing")
    service_tier: Any = Field(None, description="changes nothing")

    @model_validator(mode="after")
    def _stream_options_need_a_stream(self):
        if self.stream_options is not None and not self.stream:
            raise ValueError("stream_options is only accepted with stream = true")
        return self

    def most_tokens(self) -> int:
        return self.max_tokens or 0

    @property
    def has_usage(self) -> bool:
        """Whether a stream ends with what it cost."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)
