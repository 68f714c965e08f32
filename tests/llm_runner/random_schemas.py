"""Random JSON Schemas as people and pydantic write them."""

from __future__ import annotations

import random
from typing import Any

NAMES = ["id", "name", "näme", 'quo"te', "a/b", "tags", "items", "x y", "value", "kind", "next"]
PATTERNS = [
    "^[a-z]{2,5}$",
    "[0-9]+",
    "^(foo|bär)-\\d{1,3}$",
    "^[^x]*$",
    "a.c",
    "^\\w+\\s?\\S$",
    '["\\\\\\n]',
    "^$|^ü{2}$",
]
FORMATS = ["date", "time", "date-time", "email", "uuid", "ipv4", "ipv6", "uri", "hostname", "duration"]
WORDS = ["red", "gr\u00fcn", "a\nb", "", "日本", 'x"y', "\\", "\U0001f600"]


def random_schema(rng: random.Random, depth: int = 3) -> dict[str, Any]:
    """Returns a schema that accepts some value, of at most this depth."""
    kinds = [_string, _number, _integer, _enum, _const, _simple]
    if depth > 0:
        kinds += [_object, _object, _object, _array, _array, _tuple, _any_of, _one_of, _all_of, _dictionary, _recursive]
    schema = rng.choice(kinds)(rng, depth)
    if rng.random() < 0.2:
        schema = {"title": "T", "description": "what it is", **schema}
    return schema


def _string(rng: random.Random, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    kind = rng.randrange(4)
    if kind == 0:
        low = rng.randrange(4)
        schema |= {"minLength": low, "maxLength": low + rng.randrange(8)}
    elif kind == 1:
        schema["pattern"] = rng.choice(PATTERNS)
        if rng.random() < 0.3:
            schema["maxLength"] = 9
    elif kind == 2:
        schema["format"] = rng.choice(FORMATS)
    return schema


def _bounds(rng: random.Random, integer: bool) -> dict[str, Any]:
    def draw() -> float:
        value = rng.choice([rng.uniform(-2, 2), rng.uniform(-300, 300), rng.uniform(-1e5, 1e5)])
        return round(value) if integer or rng.random() < 0.3 else round(value, rng.randrange(1, 4))

    low, high = sorted((draw(), draw()))
    schema: dict[str, Any] = {}
    if rng.random() < 0.7:
        schema[rng.choice(["minimum", "exclusiveMinimum"])] = low
    if rng.random() < 0.7:
        schema[rng.choice(["maximum", "exclusiveMaximum"])] = high + 2
    return schema


def _number(rng: random.Random, depth: int) -> dict[str, Any]:
    return {"type": "number", **_bounds(rng, False)}


def _integer(rng: random.Random, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    if rng.random() < 0.15:
        return schema | {"multipleOf": rng.choice([1, 2, 7, 10, 12])}
    if rng.random() < 0.15:
        return schema | {"multipleOf": 3, "minimum": -10, "exclusiveMaximum": 100}
    return schema | _bounds(rng, True)


def _enum(rng: random.Random, depth: int) -> dict[str, Any]:
    values = rng.sample(WORDS, rng.randrange(1, 5))
    if rng.random() < 0.5:
        return {"type": "string", "enum": values}
    return {"enum": [*values, None, 3, -1.5, True, {"a": [1, "x"]}, []]}


def _const(rng: random.Random, depth: int) -> dict[str, Any]:
    return {"const": rng.choice([1, "x", None, False, [1, {"k": "v"}], 2.5, "ü"])}


def _simple(rng: random.Random, depth: int) -> dict[str, Any]:
    return {"type": rng.choice(["boolean", "null", "string", ["string", "null"], ["integer", "boolean"]])}


def _object(rng: random.Random, depth: int) -> dict[str, Any]:
    names = rng.sample(NAMES, rng.randrange(0, 6))
    schema: dict[str, Any] = {"type": "object", "properties": {name: random_schema(rng, depth - 1) for name in names}}
    required = [name for name in names if rng.random() < 0.6]
    if required or rng.random() < 0.3:
        schema["required"] = required
    kind = rng.randrange(6)
    if kind < 2:
        schema["additionalProperties"] = False
    elif kind == 2:
        schema["additionalProperties"] = random_schema(rng, 0)
    elif kind == 3:
        schema["patternProperties"] = {"^z_": random_schema(rng, 0)}
    return schema


def _dictionary(rng: random.Random, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "additionalProperties": random_schema(rng, depth - 1),
        "maxProperties": 4,
    }
    if rng.random() < 0.5:
        schema["propertyNames"] = {"pattern": "^[a-z]{1,4}$"}
    if rng.random() < 0.3:
        schema["minProperties"] = 1
    return schema


def _array(rng: random.Random, depth: int) -> dict[str, Any]:
    low = rng.randrange(3)
    schema: dict[str, Any] = {
        "type": "array",
        "items": random_schema(rng, depth - 1),
        "maxItems": low + rng.randrange(4),
    }
    if low:
        schema["minItems"] = low
    return schema


def _tuple(rng: random.Random, depth: int) -> dict[str, Any]:
    items = [random_schema(rng, depth - 1) for _ in range(rng.randrange(1, 4))]
    schema: dict[str, Any] = {"type": "array", "prefixItems": items}
    kind = rng.randrange(4)
    if kind == 0:
        schema |= {"minItems": len(items), "maxItems": len(items)}
    elif kind == 1:
        schema["items"] = False
    elif kind == 2:
        schema |= {"items": {"type": "boolean"}, "maxItems": len(items) + 2}
    return schema


def _any_of(rng: random.Random, depth: int) -> dict[str, Any]:
    return {"anyOf": [random_schema(rng, depth - 1) for _ in range(rng.randrange(1, 4))]}


def _one_of(rng: random.Random, depth: int) -> dict[str, Any]:
    if rng.random() < 0.5:
        return {"oneOf": [{"type": "null"}, {"type": "integer"}, _object(rng, depth)]}
    branches = []
    for kind in ("cat", "dog", "eel"):
        properties = {"kind": {"const": kind}, "value": random_schema(rng, depth - 1)}
        branches.append(
            {"type": "object", "properties": properties, "required": ["kind"], "additionalProperties": False}
        )
    return {"oneOf": branches, "discriminator": {"propertyName": "kind"}}


def _all_of(rng: random.Random, depth: int) -> dict[str, Any]:
    if rng.random() < 0.5:
        return {"allOf": [{"type": "integer", "minimum": 1}, {"maximum": 50}, {"exclusiveMinimum": 3.5}]}
    left = {"type": "object", "properties": {"a": random_schema(rng, depth - 1)}, "required": ["a"]}
    return {"allOf": [left, {"properties": {"b": {"type": "boolean"}}, "required": ["b"]}]}


def _recursive(rng: random.Random, depth: int) -> dict[str, Any]:
    name = rng.choice(["Node", "a/b~c"])
    reference = {"$ref": "#/$defs/" + name.replace("~", "~0").replace("/", "~1")}
    node = {
        "type": "object",
        "properties": {"value": {"type": "integer"}, "next": {"anyOf": [reference, {"type": "null"}]}},
        "required": ["value", "next"],
        "additionalProperties": False,
    }
    return {"$defs": {name: node}, **reference}


def with_definitions_at_root(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema with the $defs of its parts where references look for them."""
    found: dict[str, Any] = {}

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            found.update(value.get("$defs", {}))
            return {key: walk(item) for key, item in value.items() if key != "$defs"}
        return [walk(item) for item in value] if isinstance(value, list) else value

    result = walk(schema)
    return {**result, "$defs": found} if found else result
