"""Instructions to functions of an asset: what backends that use this room have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from llm_export.errors import ArgumentError
from llm_export.partition.backend import Assembled, Backend, Blob, Read, Subgraph
from llm_export.program.specs import StateSpec

from . import attention, elements, products, recurrences, rows, views  # noqa: F401  register their ops
from .emitter import FLOAT, HALF, Author, Emitter, Tensor
from .executor import Model
from .function import Function
from .reference import Asset, references
from .refusals import MAX_UNROLLED, Refusal
from .registry import OPS
from .weights import AssetFile, Weights

CONTEXT_LENGTH = 4096
TOKEN_COUNTS = (16, 128)
HALF_ERROR = 1e-2  # of the largest logit, which float16 may add: as much as a device that is tried may be off


NamedPort = tuple[str, Sequence[int], str]  # name, shape, dtype


class Builder(Author, Protocol):
    """Builds the functions of one asset, which share what is `stored`."""

    def building(self) -> AbstractContextManager:
        """Functions are added in this block."""
        ...

    def function(
        self,
        name: str,
        inputs: Sequence[NamedPort],
        states: Sequence[NamedPort],
        body: Callable[[list[Any]], tuple[Mapping[str, Any], Mapping[str, Any]]],
    ) -> None:
        """body: of the handles of inputs and states; gives outputs, and what each state becomes."""
        ...

    def save(self, folder: Path) -> None:
        """Writes the asset. folder: does not exist yet"""
        ...


class TensorOpsBackend(Backend):
    """Writes whole decoders as an asset beside the file, with caches of a fixed size.

    context_length: positions that caches hold, at most   token_counts: of the calls that prompts are divided into
    profile: the dtype of activations, or a vendor's word
    """

    owns_states = True
    takes_rotated_inputs = False
    takes_rounded_inputs = False
    profiles = (FLOAT, HALF)
    asset: Asset  # whose last file holds the weights
    builder: type[Builder]
    emitter: type[Emitter]
    weights: type[Weights]

    def __init__(
        self,
        context_length: int = CONTEXT_LENGTH,
        token_counts: Sequence[int] = TOKEN_COUNTS,
        profile: str = FLOAT,
    ):
        if context_length < 1:
            raise ArgumentError(f"{self.name}: context_length = {context_length}: must be at least 1")
        if profile not in self.profiles:
            raise ArgumentError(f"{self.name}: profile = '{profile}': must be one of {', '.join(self.profiles)}")
        self.context_length, self.token_counts, self.profile = context_length, tuple(token_counts), profile
        self.float_dtype = FLOAT if profile == FLOAT else HALF
        self.rounding = 0.0 if profile == FLOAT else HALF_ERROR

    def counts_for(self, most: int, states: Sequence[StateSpec]) -> tuple[int, ...]:
        if any(state.kind == "recurrent" for state in states):
            most = min(most, MAX_UNROLLED)
        most = min(most, self.context_length)
        return tuple(count for count in self.token_counts if count <= most) or (most,) * (most > 1)

    def lower(self, subgraph: Subgraph) -> Blob:
        if any(instruction.op not in OPS for instruction in subgraph.method.instructions):
            raise Refusal.OP.of()
        weights = self.weights(float_dtype=self.float_dtype)
        emit(Function(subgraph, self.emitter(None, self.float_dtype), weights, self.context_length))
        return Blob(b"", ())

    def assemble(
        self, parts: Sequence[Subgraph], read: Read, folder: Path, name: str, context_length: int
    ) -> Assembled:
        """Cost: memory for the weights, twice."""
        length = min(self.context_length, context_length)
        builder, weights = self.builder(), self.weights(read, parts, self.float_dtype)
        emitter = self.emitter(builder, self.float_dtype)
        functions = named([Function(part, emitter, weights, length) for part in parts])
        with builder.building():
            for each, function in functions.items():
                inputs, states = (
                    [(port.name, port.shape, port.dtype) for port in ports]
                    for ports in (function.inputs(), function.state_inputs())
                )
                inputs, states = ([*inputs, *states], []) if emitter.carries_states else (inputs, states)
                builder.function(each, inputs, states, partial(handles_of, function))
        builder.save(folder)
        blobs = references(self.asset, folder, name, functions, length)
        holder = self.asset.files[-1]
        return Assembled(blobs, holder, partial(weights.place, file=AssetFile(folder / holder)))

    def interpreter(self, folder: Path) -> Any:
        """What runs an asset on this machine; see executor.Interpreter."""
        raise NotImplementedError

    def open_model(self, path: Path, folder: Path | None = None) -> Model:
        return Model(path, self.name, self.asset, self.interpreter, folder)


def named(functions: Sequence[Function]) -> dict[str, Function]:
    """`prefill[16]` as prefill_16; further parts of a method get numbers."""
    plain = [function.method.label.replace("[", "_").removesuffix("]") for function in functions]
    names = [
        name if plain.count(name) == 1 else f"{name}_part{plain[:index].count(name)}"
        for index, name in enumerate(plain)
    ]
    return dict(zip(names, functions, strict=True))


def emit(function: Function, arguments: Sequence[Any] = ()) -> list[Tensor]:
    """Lowers all instructions. arguments: the author's handles of inputs and states, in order. Returns: the outputs"""
    handles, method, e = iter(arguments), function.method, function.emitter
    given = zip(method.inputs, function.inputs(), strict=True)
    inputs = {index: Tensor(port.shape, port.dtype, next(handles, None)) for index, port in given}
    function.values = {
        index: e.cast(Tensor(function.shape(index), tensor.dtype, tensor.handle), function.dtype(index))
        for index, tensor in inputs.items()
    }
    function.states = {
        port.name: Tensor(port.shape, port.dtype, next(handles, None)) for port in function.state_inputs()
    }
    for instruction in method.instructions:
        OPS[instruction.op].lower(function, instruction)
    outputs = zip(function.outputs(), method.outputs, strict=True)
    return [e.cast(function.values[index], port.dtype) for port, index in outputs]


def handles_of(function: Function, handles: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Lowers all instructions. Returns: the author's handles of outputs, and of what each state becomes, by names"""
    outputs = zip(function.outputs(), emit(function, handles), strict=True)
    made = {port.name: tensor for port, tensor in outputs}
    made |= {function.output_of(name): tensor for name, tensor in function.carried.items()}
    states = {} if function.emitter.carries_states else function.states
    handle = function.emitter.handle
    return {name: handle(x) for name, x in made.items()}, {name: handle(x) for name, x in states.items()}
