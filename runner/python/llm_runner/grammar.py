"""Grammars that generated text follows: JSON Schema, regular expressions, GBNF and Lark."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from llm_runner import _core
from llm_runner.errors import ArgumentError
from llm_runner.labels import never_raises
from llm_runner.loaded import LoadedModel

SYNTAXES = ("json_schema", "regex", "gbnf", "lark")  # in the order of MOTE_SYNTAX_*
WHITESPACES = ("flexible", "compact", "spaced")  # of MOTE_JSON_WHITESPACE_*


class Vocabulary:
    """Tokens as bytes, for grammars over logits that come from elsewhere.

    tokens: the bytes of each id; b"" for a token that no grammar allows, such as a special token
    eos_token_ids: what ends a text
    """

    def __init__(self, tokens: Sequence[bytes], eos_token_ids: Sequence[int] = ()):
        self._core = _core.vocabulary_of_tokens(list(tokens), list(eos_token_ids))
        self.num_tokens = len(tokens)


class Grammar:
    """A JSON Schema, a regular expression or a grammar, compiled once for a model or a `Vocabulary`.

    json_schema: a schema as a dict or as text, or a pydantic model class
    regex: the whole text must match it   grammar: GBNF with a rule `root`, or Lark with a rule `start`
    syntax: of `grammar`, "gbnf" or "lark"; None: GBNF if there is a ::= in it
    whitespace: between the parts of JSON: "flexible" (none, a space, or a new line and indentation), "compact" (none),
        "spaced" (a space behind commas and colons)
    is_cancelled: asked every few milliseconds by the thread that compiles, such as `event.is_set`; once it returns
        something true, or raises, compiling ends
    Errors: ArgumentError with the place and what is not supported or too large; CancelledError
    Thread safety: any number of threads. docs/constrained-output.md has what is supported.
    """

    def __init__(
        self,
        vocabulary: LoadedModel | Vocabulary,
        *,
        json_schema: Mapping[str, Any] | str | bool | type | None = None,
        regex: str | None = None,
        grammar: str | None = None,
        syntax: str | None = None,
        whitespace: str = "flexible",
        is_cancelled: Callable[[], object] | None = None,
    ):
        kind, source = source_of(json_schema, regex, grammar, syntax)
        if whitespace not in WHITESPACES:
            raise ArgumentError(f"whitespace = {whitespace!r}: must be one of {', '.join(WHITESPACES)}")
        tokens = vocabulary._core if isinstance(vocabulary, Vocabulary) else _core.vocabulary_of_model(vocabulary._core)
        text = source.encode("utf-8", "surrogatepass")
        self._core = _core.Grammar(tokens, SYNTAXES.index(kind), text, WHITESPACES.index(whitespace), is_cancelled)
        self._label = f"{kind} {textwrap.shorten(source, 60, placeholder=' ...')!r}"

    @never_raises
    def __repr__(self) -> str:
        return f"Grammar: {self._label}"


class Constraint:
    """How far one text has come in a grammar, and which tokens may come next.

    Thread safety: one thread at a time. `copy` is cheap: to try tokens and go back is to keep a copy.
    """

    def __init__(self, grammar: Grammar, _core_constraint: _core.Constraint | None = None):
        self._core = _core_constraint or _core.Constraint(grammar._core)
        self._grammar = grammar

    def mask(self) -> np.ndarray:
        """Returns which tokens may come next, uint32 [(tokens + 31) // 32]: bit id % 32 of word id // 32.

        Errors: ArgumentError if no token of the vocabulary can go on with the text
        """
        return self._core.mask()

    def allowed(self) -> np.ndarray:
        """Returns the ids that may come next, ascending."""
        return np.flatnonzero(np.unpackbits(self.mask().view(np.uint8), bitorder="little"))

    def accept(self, id: int) -> None:
        """Goes on with a token. Errors: ArgumentError if it may not come, and nothing changes."""
        self._core.accept(id)

    def copy(self) -> Constraint:
        """Returns another at the same place."""
        return Constraint(self._grammar, self._core.copy())

    @property
    def may_end(self) -> bool:
        """Whether the text so far is one of the grammar."""
        return self._core.may_end()

    @property
    def is_complete(self) -> bool:
        """Whether nothing but the end may follow."""
        return self._core.is_complete()

    @property
    def forced_token(self) -> int | None:
        """What a generation takes next without running the model; None if there is a choice."""
        return self._core.forced_token()


def source_of(json_schema: Any, regex: str | None, grammar: str | None, syntax: str | None = None) -> tuple[str, str]:
    """Returns syntax and text of the one of them that was given. Errors: ArgumentError."""
    if sum(given is not None for given in (json_schema, regex, grammar)) != 1:
        raise ArgumentError("exactly one of json_schema, regex and grammar must be given")
    if syntax is not None and (grammar is None or syntax not in ("gbnf", "lark")):
        raise ArgumentError(f"syntax = {syntax!r}: must be gbnf or lark, and only beside grammar")
    if json_schema is not None:
        return "json_schema", schema_text(json_schema)
    name, text = ("regex", regex) if regex is not None else ("grammar", grammar)
    if not isinstance(text, str):
        raise ArgumentError(f"{name} = {text!r}: must be a string")
    if name == "regex":
        return name, text
    return syntax or ("gbnf" if "::=" in text else "lark"), text


def schema_text(schema: Any) -> str:
    """Returns the text of a schema or of a pydantic model's. Errors: ArgumentError for what JSON cannot hold."""
    if hasattr(schema, "model_json_schema"):
        schema = schema.model_json_schema()
    if isinstance(schema, str):
        return schema
    try:
        return json.dumps(schema)
    except (RecursionError, TypeError, ValueError) as error:
        raise ArgumentError(f"json_schema: must be a schema that JSON can hold: {error}") from None
