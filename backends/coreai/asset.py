"""An asset made of the parts of a program, and what a program file knows of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from llm_export.errors import FileError
from llm_export.partition.backend import Read, Subgraph

from .emitter import Emitter, Tensor
from .function import Function, Port, state_ports
from .registry import OPS
from .vendor import AssetBuilder
from .weights import Weights

FORMAT = 1
PROGRAM = "main.mlirb"  # holds all of an asset, weights included
SUFFIX = ".aimodel"


@dataclass(frozen=True)
class StatePort:
    """A state of a function. state: index of the program's   part: keys, values or state"""

    name: str
    state: int
    part: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Reference:
    """What a part of a program file says of the function that computes it; JSON in the file.

    asset: name of a folder beside the file   sha256: of its program
    """

    asset: str
    sha256: str
    function: str
    context_length: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    states: tuple[StatePort, ...]

    def to_bytes(self) -> bytes:
        return json.dumps({"format": FORMAT, **asdict(self)}, separators=(",", ":")).encode()

    @classmethod
    def of_bytes(cls, data: bytes, place: str) -> Reference:
        """Errors: FileError naming the field. place: for messages"""
        try:
            fields: dict[str, Any] = json.loads(data)
            found = fields.pop("format")
            if found != FORMAT:
                raise FileError(f"{place}: format = {found!r}: must be {FORMAT}")
            ports = {name: tuple(_port(Port, each) for each in fields.pop(name)) for name in ("inputs", "outputs")}
            states = tuple(_port(StatePort, each) for each in fields.pop("states"))
            reference = cls(**fields, **ports, states=states)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FileError(f"{place}: is no reference to a Core AI asset: {error}") from error
        reference.check(place)
        return reference

    def check(self, place: str) -> None:
        for name in ("asset", "sha256", "function"):
            if not isinstance(getattr(self, name), str):
                raise FileError(f"{place}: {name} = {getattr(self, name)!r}: must be a text")
        if not self.asset.endswith(SUFFIX) or Path(self.asset).name != self.asset:
            raise FileError(f"{place}: asset = '{self.asset}': must be a name that ends in {SUFFIX}")
        if not isinstance(self.context_length, int) or not 0 < self.context_length < 2**31:
            raise FileError(f"{place}: context_length = {self.context_length!r}: must be 1 to 2147483647")


def _port(kind: type, fields: Mapping[str, Any]) -> Any:
    port = kind(**{**fields, "shape": tuple(fields["shape"])})
    if not all(isinstance(size, int) and 0 <= size < 2**31 for size in port.shape):
        raise ValueError(f"shape = {list(port.shape)}: must be sizes")
    return port


def emit(function: Function, arguments: Sequence[Any] = ()) -> None:
    """Lowers all instructions. arguments: the author's handles of inputs and states, in order"""
    handles = iter(arguments)
    made = [
        Tensor(port.shape, port.dtype, next(handles, None)) for port in (*function.inputs(), *function.state_inputs())
    ]
    count = len(function.method.inputs)
    function.values = dict(zip(function.method.inputs, made[:count], strict=True))
    names = (port.name for port in function.state_inputs())
    function.states = dict(zip(names, made[count:], strict=True))
    for instruction in function.method.instructions:
        OPS[instruction.op].lower(function, instruction)


def write(parts: Sequence[Subgraph], read: Read, folder: Path, asset: str, context_length: int) -> list[bytes]:
    """Writes an asset with a function for each part.

    read: gives the stored bytes of a weight   folder: does not exist yet   asset: its name beside the file
    Returns: a Reference for each part, as bytes. Cost: memory for the weights, twice
    """
    builder, weights = AssetBuilder(), Weights(read)
    emitter = Emitter(builder)
    functions = [Function(part, emitter, weights, context_length) for part in parts]
    names = _names([part.method.label for part in parts])
    with builder.building():
        for name, function in zip(names, functions, strict=True):
            _add(builder, name, function)
    builder.save(folder)
    digest = digest_of(folder)
    return [
        _reference(asset, digest, name, function).to_bytes()
        for name, function in zip(names, functions, strict=True)
    ]


def _add(builder: AssetBuilder, name: str, function: Function) -> None:
    def body(handles: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        emit(function, handles)
        outputs = zip(function.outputs(), function.method.outputs, strict=True)
        return (
            {port.name: function.values[value].handle for port, value in outputs},
            {state: tensor.handle for state, tensor in function.states.items()},
        )

    builder.function(
        name,
        [(port.name, port.shape, port.dtype) for port in function.inputs()],
        [(port.name, port.shape, port.dtype) for port in function.state_inputs()],
        body,
    )


def _names(labels: Sequence[str]) -> list[str]:
    """`prefill[16]` as prefill_16; further parts of a method get numbers."""
    plain = [label.replace("[", "_").removesuffix("]") for label in labels]
    return [
        name if plain.count(name) == 1 else f"{name}_part{plain[:index].count(name)}"
        for index, name in enumerate(plain)
    ]


def _reference(asset: str, digest: str, name: str, function: Function) -> Reference:
    states = [
        StatePort(port.name, index, part, port.shape, port.dtype)
        for index, spec in enumerate(function.subgraph.states)
        for part, port in state_ports(index, spec, function.capacity).items()
        if port.name in function.states
    ]
    return Reference(
        asset,
        digest,
        name,
        function.capacity,
        tuple(function.inputs()),
        tuple(function.outputs()),
        tuple(states),
    )


def digest_of(folder: Path) -> str:
    with open(folder / PROGRAM, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_asset(folder: Path, reference: Reference, place: str) -> None:
    """Errors: FileError if the asset is not there, or is another."""
    if not (folder / PROGRAM).is_file():
        raise FileError(f"{place}: its asset {folder} is not there: keep it beside the file, under this name")
    if digest_of(folder) != reference.sha256:
        raise FileError(
            f"{place}: its asset {folder} is not the one that it was exported with: export again, or put the right one "
            "there"
        )
