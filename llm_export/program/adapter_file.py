"""Writes `.mote-adapter` files; docs/adapters.md describes them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import flatbuffers
import torch
from torch import Tensor

from llm_export.program import adapter_schema as fb
from llm_export.program.header import HEADER_BYTES, Header

MAGIC = b"MOTA\r\n\x1a\n"
VERSION = 1
ALIGNMENT = 64
DTYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}
FILE_IDENTIFIER = b"MOTA"


@dataclass(frozen=True)
class AdapterBase:
    """The .mote file that an adapter is for, by the segment of its weights."""

    weights_bytes: int
    weights_crc32: int
    model_id: str


@dataclass(frozen=True)
class AdapterPart:
    """What is added to rows of the products of one weight: y = (1 + gain) * y + scale * B (A x)."""

    module: str
    weight: str
    first_row: int
    scale: float
    a: Tensor  # [rank, columns]
    b: Tensor  # [rows, rank], of the same dtype: a key of DTYPES
    gains: Tensor | None = None  # float32 [rows]


def write_adapter(
    path: Path, base: AdapterBase, parts: Sequence[AdapterPart], method: str, source: str, exporter_version: str
) -> int:
    """Writes an adapter file: to a name that `replacing` gives, if the file shall appear whole or not at all.

    Returns: the size of the file. Cost: memory for the matrices of one part
    """
    offsets, data_bytes = _offsets(part for part in parts)
    checksum = 0
    description = _describe(base, parts, offsets, data_bytes, 0, method, source, exporter_version)
    start = _aligned(HEADER_BYTES + len(description))
    with open(path, "wb") as file:
        file.write(bytes(start))
        for chunk in _data(parts):
            file.write(chunk)
            checksum = zlib.crc32(chunk, checksum)
        # Numbers have a fixed width: the description with the checksum has the same size.
        description = _describe(base, parts, offsets, data_bytes, checksum, method, source, exporter_version)
        file.seek(0)
        header = Header(MAGIC, VERSION, len(description), start + data_bytes, zlib.crc32(description))
        file.write(header.to_bytes())
        file.write(description)
    return start + data_bytes


def _matrices(part: AdapterPart) -> list[Tensor]:
    """What the file holds of a part, in order: A, B transposed, gains."""
    gains = [] if part.gains is None else [part.gains]
    return [part.a.contiguous(), part.b.t().contiguous(), *gains]


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _offsets(parts: Iterable[AdapterPart]) -> tuple[list[list[int]], int]:
    offsets, end = [], 0
    for part in parts:
        places = []
        for matrix in (part.a, part.b, *([] if part.gains is None else [part.gains])):
            places.append(end)
            end = _aligned(end + _bytes(matrix))
        offsets.append(places)
    return offsets, end


def _data(parts: Sequence[AdapterPart]) -> Iterable[bytes]:
    for part in parts:
        for matrix in _matrices(part):
            yield matrix.view(torch.uint8).numpy().tobytes()
            yield bytes(_aligned(_bytes(matrix)) - _bytes(matrix))


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def _describe(base, parts, offsets, data_bytes, checksum, method, source, exporter_version) -> bytes:
    adapter = fb.AdapterT()
    adapter.base = fb.AdapterBaseT()
    adapter.base.weightsBytes, adapter.base.weightsCrc32 = base.weights_bytes, base.weights_crc32
    adapter.base.modelId = base.model_id
    adapter.parts = [_part(part, *places) for part, places in zip(parts, offsets, strict=True)]
    adapter.dataBytes, adapter.dataCrc32 = data_bytes, checksum
    adapter.method, adapter.source, adapter.exporterVersion = method, source, exporter_version
    builder = flatbuffers.Builder(1 << 12)
    builder.ForceDefaults(True)
    builder.Finish(adapter.Pack(builder), file_identifier=FILE_IDENTIFIER)
    return bytes(builder.Output())


def _part(part: AdapterPart, a: int, b: int, gains: int = -1):
    table = fb.AdapterPartT()
    table.origin, table.weight, table.firstRow = part.module, part.weight, part.first_row
    (table.rank, table.columns), table.rows = part.a.shape, len(part.b)
    table.scale, table.dtype = part.scale, DTYPES[part.a.dtype]
    table.aOffset, table.bOffset, table.gainsOffset = a, b, gains
    return table
