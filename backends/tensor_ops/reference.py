"""What a program file says of the asset beside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from llm_export.errors import FileError

from .function import Function, Port

FORMAT = 1


@dataclass(frozen=True)
class Asset:
    """A kind of folder. files: what a SHA-256 is taken of, in this order"""

    vendor: str
    suffix: str
    files: tuple[str, ...]

    def digest(self, folder: Path) -> str:
        found = hashlib.sha256()
        for name in self.files:
            with open(folder / name, "rb") as file:
                while chunk := file.read(1 << 20):
                    found.update(chunk)
        return found.hexdigest()


@dataclass(frozen=True)
class StatePort:
    """A state of a function. state: index of the program's   part: keys, values, state or rest

    output: of the function, with what tokens add to a cache or a whole state; the state is then one of its inputs.
    "": the function changes it itself
    """

    name: str
    state: int
    part: str
    shape: tuple[int, ...]
    dtype: str
    output: str = ""


@dataclass(frozen=True)
class Reference:
    """What a part of a program file says of the function that computes it; JSON in the file.

    asset: name of a folder beside the file   sha256: of its content
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
    def of_bytes(cls, data: bytes, place: str, kind: Asset) -> Reference:
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
            raise FileError(f"{place}: is no reference to a {kind.vendor} asset: {error}") from error
        reference.check(place, kind)
        return reference

    def check(self, place: str, kind: Asset) -> None:
        for name in ("asset", "sha256", "function"):
            if not isinstance(getattr(self, name), str):
                raise FileError(f"{place}: {name} = {getattr(self, name)!r}: must be a text")
        if not self.asset.endswith(kind.suffix) or Path(self.asset).name != self.asset:
            raise FileError(f"{place}: asset = '{self.asset}': must be a name that ends in {kind.suffix}")
        if not isinstance(self.context_length, int) or not 0 < self.context_length < 2**31:
            raise FileError(f"{place}: context_length = {self.context_length!r}: must be 1 to 2147483647")


def _port(kind: type, fields: Mapping[str, Any]) -> Any:
    port = kind(**{**fields, "shape": tuple(fields["shape"])})
    if not all(isinstance(size, int) and 0 <= size < 2**31 for size in port.shape):
        raise ValueError(f"shape = {list(port.shape)}: must be sizes")
    return port


def references(
    kind: Asset, folder: Path, name: str, functions: Mapping[str, Function], context_length: int
) -> list[bytes]:
    """What the parts of a program say of the functions of an asset that was written. name: that its folder will have"""
    digest = kind.digest(folder)
    return [
        Reference(
            name, digest, each, context_length, tuple(part.inputs()), tuple(part.outputs()), tuple(_states(part))
        ).to_bytes()
        for each, part in functions.items()
    ]


def _states(function: Function) -> list[StatePort]:
    return [
        StatePort(port.name, index, part, port.shape, port.dtype, function.output_of(port.name))
        for index in range(len(function.subgraph.states))
        for part, port in function.ports_of(index).items()
        if port.name in function.states
    ]


def check_asset(folder: Path, reference: Reference, place: str, kind: Asset) -> None:
    """Errors: FileError if the asset is not there, or is another."""
    if not all((folder / name).is_file() for name in kind.files):
        raise FileError(f"{place}: its asset {folder} is not there: keep it beside the file, under this name")
    if kind.digest(folder) != reference.sha256:
        raise FileError(
            f"{place}: its asset {folder} is not the one that it was exported with: export again, or put the right one "
            "there"
        )
