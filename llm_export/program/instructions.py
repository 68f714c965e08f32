"""The types that flow from `lower` through planning to the writer; docs/ops.md says what each instruction means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from llm_export.program.specs import AssetWeights, StateSpec, WeightSpec


@dataclass(frozen=True, order=True)
class Dim:
    """A size that is linear in the number of tokens T of a call: tokens * T + constant."""

    tokens: int
    constant: int

    def at(self, num_tokens: int) -> int:
        return self.tokens * num_tokens + self.constant

    def __str__(self) -> str:
        if self.tokens == 0:
            return str(self.constant)
        head = "T" if self.tokens == 1 else f"{self.tokens}*T"
        return head if self.constant == 0 else f"{head}{self.constant:+d}"


@dataclass(frozen=True)
class Numbers:
    """A floating-point attribute: one number or several."""

    values: tuple[float, ...]


Attribute = tuple[Dim, ...] | Numbers | str

EMBED = "embed"  # the method that gives hidden states for embeddings
# The methods of heads that predict the token after the next, and tokens further on.
MTP = ("mtp", *(f"mtp_{depth}" for depth in range(2, 9)))
ON_CPU = (EMBED, *MTP)  # methods that no backend takes parts of
CPU = "cpu"  # the target without backends, which runs on the kernels only


@dataclass
class Value:
    """One tensor of a method; instructions refer to it by its index in `LoweredMethod.values`."""

    kind: str  # "activation", "input" or "weight"
    dtype: torch.dtype
    shape: tuple[Dim, ...]
    weight: int = -1  # kind "weight": index into Program.weights
    alias_of: int = -1  # a view: index of the value that it views, which may itself be a view


def storage_roots(values: Sequence[Value]) -> list[int]:
    """For each value, the value whose storage it uses: itself, unless it is a view."""
    roots: list[int] = []
    for index, value in enumerate(values):
        roots.append(index if value.alias_of < 0 else roots[value.alias_of])
    return roots


@dataclass
class Instruction:
    op: str
    inputs: list[int]  # -1: an optional input that is absent
    outputs: list[int]
    attributes: dict[str, Attribute] = field(default_factory=dict)
    origin: str = ""  # module path in the Hugging Face model


def fixed(size: int) -> Dim:
    """A size that does not grow."""
    return Dim(0, size)


def number(instruction: Instruction, name: str, default: float = 0.0) -> float:
    """A numeric attribute, floating or whole; default: where it is absent"""
    value = instruction.attributes.get(name)
    if value is None:
        return default
    if isinstance(value, Numbers):
        return value.values[0]
    assert not isinstance(value, str), f"attribute {name!r} is a word"
    return float(value[0].constant)


def optional(instruction: Instruction, position: int) -> int:
    """The value that an instruction reads at a position; -1: none"""
    return instruction.inputs[position] if position < len(instruction.inputs) else -1


@dataclass
class LoweredMethod:
    name: str
    values: list[Value]
    inputs: list[int]
    input_names: list[str]
    outputs: list[int]
    instructions: list[Instruction]
    min_tokens: int = 1
    max_tokens: int = 2**31 - 1
    target: str = CPU  # its backends, joined by "+"

    @property
    def is_fixed(self) -> bool:
        """Whether its calls have one length."""
        return self.min_tokens == self.max_tokens

    @property
    def label(self) -> str:
        """Its name among the methods of a target, which may have one for each length of a call."""
        return f"{self.name}[{self.max_tokens}]" if self.is_fixed and self.max_tokens > 1 else self.name


@dataclass(frozen=True)
class DelegateSpec:
    """What a backend made of a part of a method; `mote.delegate` has its index in `Program.delegates`."""

    backend: str
    blob: bytes
    weights: tuple[int, ...]  # indices into Program.weights, in the order in which the blob refers to them
    ops: Mapping[str, int] = field(default_factory=dict)  # op -> number of its instructions, views not counted


@dataclass(frozen=True)
class Lowered:
    """What `lower` returns: every method as instructions over one weights table."""

    methods: list[LoweredMethod]
    states: list[StateSpec]
    weights: list[WeightSpec]
    constants: dict[str, torch.Tensor]  # real values of the weights whose one source is a key here


@dataclass(frozen=True)
class Program:
    """What a file holds: every method once a target, over one weights table; fields as in Lowered."""

    methods: list[LoweredMethod]
    states: list[StateSpec]
    weights: list[WeightSpec]
    constants: dict[str, torch.Tensor]
    delegates: list[DelegateSpec] = field(default_factory=list)
    asset: AssetWeights | None = None  # what the weights are made of, where an asset holds them


@dataclass(frozen=True)
class Placement:
    """Where a value's storage lives. `per_token`: offset and bytes are multiplied by T."""

    arena: str  # "per_token" or "fixed"
    offset: int  # multiple of 64
    bytes: int  # multiple of 64


@dataclass(frozen=True)
class MethodPlan:
    """Arena bytes of a call with T tokens: per_token_bytes * T + fixed_bytes."""

    placements: tuple[Placement | None, ...]  # a view has that of its root; None for weights and views of weights
    per_token_bytes: int
    fixed_bytes: int


@dataclass(frozen=True)
class MemoryPlan:
    """What `plan` returns: the program with a place for every activation of every method."""

    program: Program
    methods: tuple[MethodPlan, ...]  # of each of the program's methods


@dataclass(frozen=True)
class GoldenSample:
    """A prompt with what eager PyTorch computed for it; fields as in schema.fbs."""

    text: str
    prompt_ids: tuple[int, ...]
    expected_ids: tuple[int, ...]
    probe_ids: tuple[int, ...]
    probe_logits: tuple[float, ...]  # [len(expected_ids), len(probe_ids)], row-major
    tolerance: float
    method: str = ""  # "embed", or "" for one of generation


@dataclass(frozen=True)
class CheckFigures:
    """What the comparison with PyTorch found; fields as in table Check of schema.fbs."""

    mode: str
    median_relative_error: float
    max_relative_error: float
    tolerance: float
    top1_agreement: float
    num_positions: int


@dataclass(frozen=True)
class Provenance:
    model_id: str
    revision: str
    model_type: str
    recipe: str
    exporter_version: str
    torch_version: str
    transformers_version: str
    license: str = ""


@dataclass(frozen=True)
class Metadata:
    """What a program file holds beside methods and weights."""

    provenance: Provenance
    vocab_size: int
    max_position_embeddings: int
    bos_token_id: int = -1
    eos_token_ids: tuple[int, ...] = ()
    generation_config: str = "{}"  # JSON object, Hugging Face names
    golden_samples: tuple[GoldenSample, ...] = ()
    tokenizer: bytes = b""  # compiled by llm_tokenizer; empty: the segment is left out
    chat_template: bytes = b""  # Jinja source, UTF-8; empty: the segment is left out
    check: CheckFigures | None = None  # None: not checked
    embedding: str = ""  # JSON object, how embeddings are made; "": they are not
