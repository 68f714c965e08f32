"""Recipes: which weight gets which bits, by how the graph uses it and by its name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from llm_export.errors import ArgumentError
from llm_export.program.formats import FORMATS, GROUP_SIZES

EMBEDDING_BITS = range(2, 9)
CHANNEL = "channel"  # a group size: all weights of an output channel, which is a row, share a scale
GROUPINGS = (*GROUP_SIZES, CHANNEL)
# How inputs are rounded to int8: rotated before, in groups of 32 columns, or with one scale a token.
INPUTS = {"rotated": "rotated_int8", "grouped": "grouped_int8", "token": "int8"}


@dataclass(frozen=True)
class Scheme:
    """How a weight is stored and how the linears that read it treat their input."""

    bits: int  # 0: as the checkpoint has it
    activations: str  # "float", "int8" or "grouped_int8"


SCHEMES = {
    **{f"8da{bits}w": Scheme(bits, "int8") for bits in FORMATS},
    **{f"{bits}w": Scheme(bits, "float") for bits in FORMATS},
    "none": Scheme(0, "float"),  # dense; of what is stored quantized, the values
    "stored": Scheme(0, "grouped_int8"),  # what is stored quantized stays as it is
    "stored-float": Scheme(0, "float"),
}
KEEPING = ("stored", "stored-float")


@dataclass(frozen=True)
class Recipe:
    """A scheme for the linears, and the bits of the token embedding and the output head."""

    name: str = "8da4w"
    group_size: int | str = 32  # one of GROUPINGS
    embedding_bits: int = 8
    inputs: str = "rotated"  # one of INPUTS

    def __post_init__(self):
        if self.name not in SCHEMES:
            raise ArgumentError(f"recipe = '{self.name}': {_one_of(SCHEMES, self.name)}")
        if self.group_size not in GROUPINGS:
            raise ArgumentError(f"group_size = {self.group_size}: {_one_of(GROUPINGS)}")
        if self.embedding_bits not in EMBEDDING_BITS:
            raise ArgumentError(f"embedding_bits = {self.embedding_bits}: must be 2 to 8")
        if self.inputs not in INPUTS:
            raise ArgumentError(f"inputs = '{self.inputs}': {_one_of(INPUTS, self.inputs)}")

    def scheme(self, use: str) -> Scheme:
        """Returns the scheme of a weight with that use; see uses.py."""
        linears = SCHEMES[self.name]
        if use == "other":
            return SCHEMES["none"]
        if linears.bits == 0:
            return linears
        if use in ("embedding", "head", "tied"):
            return Scheme(self.embedding_bits, linears.activations)
        return linears

    def __str__(self) -> str:
        if SCHEMES[self.name].bits == 0:
            return self.name
        is_told = self.inputs != "rotated" and SCHEMES[self.name].activations == "int8"
        inputs = f" inputs={self.inputs}" if is_told else ""
        return f"{self.name} group_size={self.group_size} embedding={self.embedding_bits}{inputs}"


@dataclass(frozen=True)
class Override:
    """Gives the modules whose name matches a glob pattern a scheme, and optionally a group size, of their own."""

    pattern: str
    scheme: str
    group_size: int | str = 0  # 0: the recipe's

    @classmethod
    def parse(cls, text: str) -> Override:
        """Reads `PATTERN=SCHEME` or `PATTERN=SCHEME:GROUP_SIZE`, as in `model.layers.0.*=8da8w`."""
        pattern, equals, value = text.rpartition("=")
        scheme, colon, group = value.partition(":")
        if not equals or not pattern:
            raise ArgumentError(f"override '{text}': must be PATTERN=SCHEME, as in 'model.layers.0.*=8da8w'")
        if scheme not in SCHEMES:
            raise ArgumentError(f"override '{text}': scheme '{scheme}' {_one_of(SCHEMES, scheme)}")
        if colon and group not in map(str, GROUPINGS):
            raise ArgumentError(f"override '{text}': group size '{group}' {_one_of(GROUPINGS)}")
        return cls(pattern, scheme, parse_group_size(group) if colon else 0)

    def matches(self, names: Iterable[str]) -> bool:
        """names: of one weight, as in the state dict. The pattern may name the module or the weight."""
        spelled = {name for full in names for name in (full, full.rpartition(".")[0])}
        # A leading `*.` also matches a module at the top, such as lm_head.
        return any(fnmatchcase(name, self.pattern) or fnmatchcase("." + name, self.pattern) for name in spelled)

    def __str__(self) -> str:
        return f"{self.pattern}={self.scheme}" + (f":{self.group_size}" if self.group_size else "")


def describe(recipe: Recipe, overrides: Sequence[Override]) -> str:
    """What a file says of how its weights were quantized."""
    return " ".join([str(recipe), *(f"override {override}" for override in overrides)])


def parse_group_size(text: str | None) -> int | str | None:
    """Reads a group size as a user types it: digits give a number, other text stays text. Recipe checks the value."""
    return int(text) if text is not None and text.isdecimal() else text


def check_overrides(overrides: Sequence[Override], names: Iterable[Iterable[str]]) -> None:
    """Errors: ArgumentError if an override matches no weight. names: the names of each weight that can be quantised."""
    groups = [tuple(group) for group in names]
    for override in overrides:
        if not any(override.matches(group) for group in groups):
            modules = [name.rpartition(".")[0] for group in groups for name in group]
            hint = _did_you_mean(override.pattern, modules) or f". There are, for example, {', '.join(modules[:3])}"
            raise ArgumentError(f"override '{override}': no linear or embedding of the model has such a name{hint}")


def _one_of(accepted: Iterable, given: str = "") -> str:
    return f"must be one of {', '.join(map(str, accepted))}" + (_did_you_mean(given, accepted) if given else "")


def _did_you_mean(text: str, accepted: Iterable[str]) -> str:
    close = difflib.get_close_matches(text, list(accepted), n=1)
    return f". Did you mean '{close[0]}'?" if close else ""
