"""Options by name, on their way to the library, which knows what they may be."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from llm_runner import _core
from llm_runner.adapter import texts_of
from llm_runner.errors import ArgumentError
from llm_runner.grammar import Grammar, schema_text


def describe_options() -> list[dict[str, Any]]:
    """Returns the library's table: an object for each option that a user may set.

    Each has `name`, `other_names` of the same, `scope` ("generation", "beam_search", "session" or "model"), `type`,
    `choices`, `minimum`, `maximum`, `default`, `unit`, `asks_for_sampling` and, in words, `accepted` and `help`.
    """
    return json.loads(_core.describe_options())


def check_options(options: Mapping[str, Any], *scopes: str) -> None:
    """Checks names and values without a model. Errors: ArgumentError naming the option and what would be accepted.

    scopes: as `describe_options` names them; options of others are refused
    """
    native(options, *scopes)


def native(options: Mapping[str, Any], *scopes: str) -> _core.Options:
    """Returns options as every call of the library takes them; None: as if it had not been given.

    scopes: as of `check_options`   Errors: those of it
    """
    grammar = options.get("grammar")
    if isinstance(grammar, Grammar):
        options = {name: value for name, value in options.items() if name != "grammar"}
    values = {name: _as_json(name, value) for name, value in options.items()}
    made = _core.Options(sum(_core.SCOPES[scope] for scope in scopes), json.dumps(values))
    if isinstance(grammar, Grammar):
        made.set_grammar(grammar._core)
    return made


def names_of(*scopes: str) -> frozenset[str]:
    """Returns the names of the options of scopes, also those that other software has for them."""
    return frozenset(name for name, option in _table().items() if option["scope"] in scopes)


def value_of(name: str, options: Mapping[str, Any]) -> Any:
    """Returns what an option is: its value among `options`, by any of its names, or its default."""
    row = _table()[name]
    given = (options.get(spelling) for spelling in (name, *row.get("other_names", ())))
    return next((value for value in given if value is not None), row["default"])


def own_name(name: str) -> str:
    """Returns the library's name of an option, which other software may call otherwise."""
    option = _table().get(name)
    return name if option is None else option["name"]


@cache
def _table() -> dict[str, dict[str, Any]]:
    return {name: option for option in describe_options() for name in (option["name"], *option["other_names"])}


def _as_json(name: str, value: Any) -> Any:
    """Returns what json.dumps writes as the library reads it. Errors: ArgumentError for what JSON cannot hold."""
    if name == "json_schema" and value is not None:
        value = schema_text(value)
    if name == "sequence_bias" and isinstance(value, Mapping):
        value = list(value.items())
    if name == "adapters" and value is not None:
        value = texts_of(value)
    option = _table().get(name)
    if option is None:
        return None  # the library refuses the name
    try:
        return _plain(value, option["type"] == "biases")
    except TypeError:
        raise ArgumentError(f"{name} = {repr(value)[:60]}: must be {option['accepted']}") from None
    except UnicodeEncodeError as error:
        raise ArgumentError(f"{name}: not valid Unicode: {error}") from None


def _plain(value: Any, is_bias: bool) -> Any:
    """Rebuilds a value of JSON types; a bias may be -inf, which JSON has not. Errors: TypeError, UnicodeEncodeError."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return value.encode().decode()
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        if is_bias and value == -math.inf:
            return "-inf"
        raise TypeError
    if isinstance(value, os.PathLike):
        return _plain(os.fspath(value), is_bias)
    if isinstance(value, Mapping):
        return {str(key): _plain(item, is_bias) for key, item in value.items()}
    if hasattr(value, "tolist"):  # numpy's and PyTorch's scalars and arrays
        return _plain(value.tolist(), is_bias)
    if hasattr(value, "__index__"):
        return value.__index__()
    if hasattr(value, "__float__"):
        return _plain(float(value), is_bias)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [_plain(item, is_bias) for item in value]
    raise TypeError
