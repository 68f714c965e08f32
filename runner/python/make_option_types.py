"""Writes llm_runner/option_types.py: the keywords of the package, made of the library's table of options.

python make_option_types.py OPTIONS.json OUT.py, where OPTIONS.json is what mote_describe_options gives
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

HEADER = '''\
"""What may be asked of the library, by name; made by runner/python/make_option_types.py of the table of options.

What is absent or None has the default of the model's generation_config, and where that has none the one given here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from llm_runner.adapter import AdapterLike
from llm_runner.grammar import Grammar
'''
CLASSES = {
    "generation": ("GenerationOptions", "Options of a generation; docs/sampling.md tells what each does."),
    "beam_search": ("BeamSearchOptions", "Options of a beam search beside those of a generation."),
    "session": ("SessionOptions", "Options of a session."),
    "model": ("LoadingOptions", "Options of `Model.load`."),
}
TYPES = {
    "flag": "bool",
    "integer": "int",
    "number": "float",
    "text": "str",
    "texts": "str | Sequence[str]",
    "token_ids": "Sequence[int]",
    "tokens": "Sequence[str | int]",
    "token_id_lists": "Sequence[Sequence[int]]",
}
# What Python also takes, which becomes one of the table's types.
TYPES_BY_NAME = {
    "adapters": "AdapterLike | Sequence[AdapterLike]",
    "cache_dir": "str | os.PathLike[str]",
    "weights_file": "str | os.PathLike[str]",
    "cpus": "str | Sequence[int]",
    "early_stopping": 'bool | Literal["never"]',
    "grammar": "str | Grammar",
    "json_schema": "Mapping[str, Any] | str | bool | type",
    "logit_bias": "Mapping[int, float]",
    "mirostat": "Literal[0, 2]",
    "sequence_bias": "Mapping[tuple[int, ...], float] | Sequence[tuple[Sequence[int], float]]",
}
WIDTH = 120


def type_of(option: dict[str, Any]) -> str:
    """Returns the type of an option's values. Errors: KeyError for a type of the table that is not known here."""
    if option["name"] in TYPES_BY_NAME:
        return TYPES_BY_NAME[option["name"]]
    if option["type"] == "choice":
        return f"Literal[{', '.join(json.dumps(choice) for choice in option['choices'])}]"
    return TYPES[option["type"]]


def comment_of(option: dict[str, Any]) -> str:
    """Returns what the option is for, what it takes, its unit and its default."""
    is_plain = option["type"] in ("choice", "flag") or option["accepted"] == "a text"
    takes = "" if is_plain else f"; {option['accepted']}"
    unit = f", in {option['unit']}" if option["unit"] and option["unit"] not in option["help"].lower() else ""
    default = option["default"]
    text = "none" if default in (None, [], "") else default if isinstance(default, str) else json.dumps(default)
    asks = "; asks for sampling" if option["asks_for_sampling"] else ""
    return f"{option['help']}{takes}{unit}; default: {text}{asks}"


def class_of(name: str, sentence: str, options: list[dict[str, Any]]) -> str:
    """Returns a TypedDict with the options."""
    lines = [f"class {name}(TypedDict, total=False):", f'    """{sentence}"""', ""]
    for option in options:
        lines += textwrap.wrap(comment_of(option), WIDTH, initial_indent="    # ", subsequent_indent="    # ")
        lines.append(f"    {option['name']}: {type_of(option)} | None")
    return "\n".join(lines)


def option_types(options: list[dict[str, Any]]) -> str:
    """Returns the module's text. Errors: KeyError for a scope or a type that is not known here."""
    scopes: dict[str, list[dict[str, Any]]] = {scope: [] for scope in CLASSES}
    for option in options:
        scopes[option["scope"]].append(option)
    classes = [class_of(*CLASSES[scope], found) for scope, found in scopes.items()]
    return "\n\n".join([HEADER, *(text + "\n" for text in classes)])


def main(source: str, out: str) -> None:
    Path(out).write_text(option_types(json.loads(Path(source).read_text())), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
