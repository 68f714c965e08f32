"""What an adapter must know of the model that it is for: its identity, and where the rows of each linear are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_export.adapters.peft import LoraModule
from llm_export.checkpoint.parts import Part
from llm_export.checkpoint.weights import WRAPPER_PREFIXES
from llm_export.errors import ProgramError
from llm_export.program.adapter_file import AdapterBase
from llm_runner import Model

LINEARS = ("mote.linear", "mote.gated_linear")


@dataclass(frozen=True)
class Place:
    """Rows of a weight of the base that one linear of the Hugging Face model became."""

    source: str  # in the module's state dict
    weight: str  # in the file
    first_row: int
    rows: int
    columns: int
    factor: float = 1.0  # that the weight of the linear was multiplied by


@dataclass(frozen=True)
class Base:
    path: Path
    identity: AdapterBase
    exporter_version: str
    places: dict[str, Place]  # by name in the module's state dict
    other: dict[str, str]  # names of other weights, and what they are there

    def place_of(self, module: LoraModule) -> Place:
        """Errors: ProgramError for a module that is no linear of the base, or of another shape."""
        place = next((self.places[name] for name in _names(module.name) if name in self.places), None)
        if place is None:
            reader = next((self.other[name] for name in _names(module.name) if name in self.other), None)
            why = f"is {reader} there" if reader else "is not there"
            leaves = sorted({name.split(".")[-2] for name in self.places if name.count(".")})
            raise ProgramError(
                f"{module.name}: cannot be adapted in {self.path}: its weight {why}; must be one of the linears "
                f"{', '.join(leaves)}"
            )
        shape = (len(module.b), module.a.shape[1])
        if shape != (place.rows, place.columns):
            raise ProgramError(
                f"{module.name}: lora_B A has shape {list(shape)}: must be {[place.rows, place.columns]}, as the "
                f"weight {place.source} of {self.path}"
            )
        return place


def _names(module: str) -> list[str]:
    """Names that the module's weight may have in the file: that of the text model in a multimodal wrapper too."""
    names = [f"{module}.weight"]
    for long, short in WRAPPER_PREFIXES:
        if module.startswith(long):
            names.append(f"{short}{module.removeprefix(long)}.weight")
    return names


def open_base(model: Model, path: Path) -> Base:
    """Errors: ProgramError for a file whose fused weights do not say which rows are whose."""
    about = model.describe()
    segment = next(each for each in about["segments"] if each["kind"] == "weights")
    made = about["provenance"]
    identity = AdapterBase(segment["bytes"], int(segment["crc32"], 16), made["model_id"])
    places: dict[str, Place] = {}
    other: dict[str, str] = {}
    for index, readers in _readers(about).items():
        tensor = about["weights"]["tensors"][index]
        sources, factors = _sources(tensor["name"])
        if len(tensor["shape"]) != 2 or not readers & set(LINEARS):
            parts = [Part.of(source) for source in sources]
            how = "stored as a stack of matrices, read by" if any(parts) else "read by"
            names = [source if part is None else part.source for source, part in zip(sources, parts, strict=True)]
            other |= dict.fromkeys(names, f"{how} {', '.join(sorted(readers))}")
            continue
        places |= {place.source: place for place in _split(tensor, sources, factors, path)}
    return Base(path, identity, made["exporter_version"], places, other)


def _readers(about: dict[str, Any]) -> dict[int, set[str]]:
    """The ops that read each weight."""
    readers: dict[int, set[str]] = {}
    for method in about["methods"]:
        for instruction in method["instructions"]:
            for each in instruction["weights"]:
                readers.setdefault(each["tensor"], set()).add(instruction["op"])
    return readers


def _sources(name: str) -> tuple[list[str], list[float]]:
    """Returns the names that the name of a weight joins, and the factors that stand behind them."""
    parts = [part.partition("*") for part in name.split("+")]
    return [source for source, *_ in parts], [float(factor or 1) for *_, factor in parts]


def _split(tensor: dict[str, Any], sources: list[str], factors: list[float], path: Path) -> list[Place]:
    rows, columns = tensor["shape"]
    parts = tensor.get("source_rows") or ([rows] if len(sources) == 1 else [])
    if len(parts) != len(sources) or sum(parts) != rows or min(parts) < 0:
        raise ProgramError(
            f"{path}: weight {tensor['name']}: source_rows = {parts}: must be a number of rows for each of its "
            f"{len(sources)} names; export the model again with this version"
        )
    places, first = [], 0
    for source, factor, count in zip(sources, factors, parts, strict=True):
        places.append(Place(source, tensor["name"], first, count, columns, factor))
        first += count
    return places
