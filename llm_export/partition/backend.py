"""What a backend implements ahead of time: docs/adding-a-backend.md; runner/program/delegate.h is the other half."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import torch

from llm_export.program.instructions import LoweredMethod
from llm_export.program.specs import AssetWeight, StateSpec, WeightSpec

Read = Callable[[WeightSpec], Iterable]  # the stored bytes of a weight, in chunks


class Unsupported(Exception):
    """A backend does not take an instruction; the text says why, in few words."""


class Reason(Enum):
    """Base of a backend's enumeration of reasons, each with its words and names in braces where it tells what it met:
    `raise Refusal.RANK.of(rank=7)`.
    """

    def of(self, **met: object) -> Refused:
        return Refused(self, self.value.format(**met))


class Refused(Unsupported):
    """Says why in the words of a Reason."""

    def __init__(self, refusal: Reason, text: str):
        super().__init__(text)
        self.refusal = refusal


@dataclass(frozen=True)
class OpEntry:
    """lower: of a builder and an instruction   refuses: its reasons beside those that any op may have"""

    lower: Callable
    refuses: tuple[Reason, ...]


class OpTable(dict[str, OpEntry]):
    """A backend's functions that lower ops, by the names of docs/ops.md."""

    def op(self, *names: str, refuses: tuple[Reason, ...] = ()) -> Callable[[Callable], Callable]:
        """Enters the decorated function for the ops of these names."""

        def register(function: Callable) -> Callable:
            self.update(dict.fromkeys(names, OpEntry(function, refuses)))
            return function

        return register


@dataclass(frozen=True)
class Subgraph:
    """Instructions for a backend, as a method of their own.

    method: its inputs are activations that others make, its outputs those that others read, all contiguous
    weights: the program's table, to which values of kind "weight" refer
    constants: real values of the weights whose one source is a key here (scalars, tables)
    embedded: indices of the weights that an embedding of the program reads too, on the CPU
    states: the program's table, to which attributes "state" refer
    """

    method: LoweredMethod
    weights: Sequence[WeightSpec]
    constants: Mapping[str, torch.Tensor]
    embedded: Set[int] = frozenset()
    states: Sequence[StateSpec] = ()


@dataclass(frozen=True)
class Assembled:
    """What `assemble` made.

    blobs: of each part, which refer to the asset   file: that holds the weights, from the asset's folder
    place: where a weight lies in it
    """

    blobs: list[bytes]
    file: str
    place: Callable[[WeightSpec], AssetWeight]


@dataclass(frozen=True)
class Blob:
    """What a backend made of a subgraph.

    weights: indices into the program's table, in the order in which the bytes refer to them
    """

    data: bytes
    weights: tuple[int, ...]


class Backend(ABC):
    name: str  # as the C++ backend's
    min_instructions: int = 2  # smaller islands stay with the next backend; views do not count
    # Whether it keeps keys and values itself: it then gets the instructions that touch a state, where it takes all of
    # them in all methods, and the runner allocates no such state.
    owns_states: bool = False
    # Numbers of tokens, above 1, that it compiles prefill and verify for; decode has one token. Empty: any number.
    # A target has both methods once for each, and the runner pads a call up to the next one.
    token_counts: tuple[int, ...] = ()
    # Whether it takes negative multipliers of groups, and linears that rotate their input. One that does not costs a
    # file that is made for it the quality that these give, in all targets: weights are there once.
    takes_signed_multipliers: bool = True
    takes_rotated_inputs: bool = True
    # Whether it takes attention whose values are parts of its keys, or loses nothing where the CPU does. For one that
    # does not, layers over a latent keep keys and values of all heads, in all targets: states are there once.
    takes_values_in_keys: bool = True
    # Whether it takes inputs that are rounded to int8. For one that does not, the default recipe has float inputs.
    takes_rounded_inputs: bool = True
    # Of weights in one part, as `weight_bytes` counts them: an island that has more becomes several. 0: any number.
    max_part_bytes: int = 0
    # Names of the ways in which it can compute, of which `name:profile` chooses one and `name` the first.
    profiles: tuple[str, ...] = ()
    profile: str = ""
    # What its arithmetic may add to the relative error of logits that is accepted, as float16 does.
    rounding: float = 0.0
    # Whether it takes scales for groups of columns. For one that does not, weights have 8 bits and a scale for each row
    # unless others are named.
    takes_groups: bool = True
    # Of the name of the asset beside the file that its parts become, if they do, which holds the only copy of the
    # weights that they read: `lower` then only says whether it takes them, and `assemble` makes the asset.
    asset_suffix: str = ""

    def check_installed(self) -> None:  # noqa: B027  most need nothing
        """Errors: ArgumentError if what it needs ahead of time is not there, with the line that installs it."""

    def weight_bytes(self, spec: WeightSpec) -> int:
        """What a weight takes of `max_part_bytes`."""
        return 0

    def counts_for(self, most: int, states: Sequence[StateSpec]) -> tuple[int, ...]:
        """Its token_counts for a model whose calls have `most` tokens at most."""
        return self.token_counts

    def assemble(
        self, parts: Sequence[Subgraph], read: Read, folder: Path, name: str, context_length: int
    ) -> Assembled:
        """Makes the asset, a new folder, of all parts of a program.

        name: that the folder will have beside the file   context_length: positions that the model can see
        """
        raise NotImplementedError

    def open_model(self, path: Path, folder: Path | None = None) -> Any:
        """The file with its asset, to be checked on this machine: has tokenize and session as llm_runner's Model.

        folder: the asset, if it is not yet where the file says
        """
        raise NotImplementedError

    def refusal(self, node: Subgraph) -> str | None:
        """Returns why it does not take a subgraph of one instruction, or None. Runs `lower` and drops the result."""
        try:
            self.lower(node)
        except Unsupported as error:
            return str(error)
        return None

    @abstractmethod
    def lower(self, subgraph: Subgraph) -> Blob:
        """Errors: Unsupported."""
