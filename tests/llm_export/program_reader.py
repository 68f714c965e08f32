"""Reads `.mote` files back in Python. Devices use the C++ loader, which checks everything."""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from llm_export.errors import FileError, ProgramError
from llm_export.program import flat
from llm_export.program.formats import stored_bytes
from llm_export.program.header import HEADER_BYTES, MAGIC, VERSION, Header
from llm_export.program.instructions import (
    CheckFigures,
    DelegateSpec,
    GoldenSample,
    MemoryPlan,
    Metadata,
    Program,
    Provenance,
)
from llm_export.program.specs import StateSpec, TileScales, WeightSpec

Unpack = Callable[[bytes, WeightSpec], Tensor]  # stored tiles of a quantised weight -> its float32 tensor


@dataclass(frozen=True)
class ProgramFile:
    """A program file that was read; weights are views of the mapped file until they are asked for."""

    path: Path
    planned: MemoryPlan
    metadata: Metadata
    segments: tuple[flat.SegmentRecord, ...]
    weight_offsets: tuple[int, ...]
    contents: memoryview

    @property
    def weights(self) -> list[WeightSpec]:
        return self.planned.program.weights

    def weight_bytes(self, index: int) -> memoryview:
        """The stored bytes of a weight."""
        segment = next(segment for segment in self.segments if segment.kind == "weights")
        start = segment.offset + self.weight_offsets[index]
        return self.contents[start : start + stored_bytes(self.weights[index])]

    def weight(self, index: int, unpack: Unpack | None = None) -> Tensor:
        """A weight as a dense tensor: stored elements if dense, else what `unpack` makes of its tiles."""
        spec, data = self.weights[index], bytearray(self.weight_bytes(index))
        if spec.bits == 0:
            flat_tensor = torch.frombuffer(data, dtype=spec.dtype) if data else torch.empty(0, dtype=spec.dtype)
            return flat_tensor.reshape(spec.shape)
        if unpack is None:
            raise ProgramError(f"{self.path}: weight '{spec.name}' has {spec.bits} bits: reading it needs an unpacker")
        return unpack(bytes(data), spec)

    def check_segments(self) -> None:
        """Errors: FileError if a segment's bytes are not those that were written."""
        for segment in self.segments:
            actual = zlib.crc32(self.contents[segment.offset : segment.offset + segment.bytes])
            if actual != segment.crc32:
                raise FileError(
                    f"{self.path}: segment {segment.kind} has checksum {actual:08x}, recorded is {segment.crc32:08x}"
                )


def read_program(path: str | Path) -> ProgramFile:
    """Maps a program file. Errors: FileError if it is missing, truncated or of another version."""
    path = Path(path)
    try:
        with open(path, "rb") as file:
            contents = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be read: {error}") from error
    program = flat.parse(_flatbuffer(path, contents))
    weights = [_weight(item) for item in program.weights]
    methods, plans = zip(*map(flat.method_of, program.methods), strict=True)
    segments = tuple(map(flat.SegmentRecord.of, program.segments))
    read = Program(
        list(methods), [_state(item) for item in program.states], weights, {}, _delegates(program, segments, contents)
    )
    planned = MemoryPlan(read, plans)
    offsets = tuple(item.offset for item in program.weights)
    return ProgramFile(path, planned, _metadata(program, segments, contents), segments, offsets, contents)


def _flatbuffer(path: Path, contents: memoryview) -> bytes:
    if len(contents) < HEADER_BYTES:
        raise FileError(f"{path}: has {len(contents)} bytes: a .mote file starts with a header of {HEADER_BYTES}")
    header = Header.of(contents, MAGIC)
    if header is None:
        raise FileError(f"{path}: is not a .mote file: the first 8 bytes are {bytes(contents[:8])!r}")
    if header.version != VERSION or header.header_bytes != HEADER_BYTES:
        raise FileError(f"{path}: has version {header.version}: this exporter reads version {VERSION}")
    if header.file_bytes != len(contents) or HEADER_BYTES + header.body_bytes > header.file_bytes:
        raise FileError(
            f"{path}: has {len(contents)} bytes, its header says {header.file_bytes}: it was truncated or appended to"
        )
    buffer = bytes(contents[HEADER_BYTES : HEADER_BYTES + header.body_bytes])
    if zlib.crc32(buffer) != header.checksum:
        recorded = f"{header.checksum:08x}"
        raise FileError(f"{path}: the program's checksum is not the recorded {recorded}: the file is damaged")
    return buffer


def _delegates(program, segments: tuple[flat.SegmentRecord, ...], contents: memoryview) -> list[DelegateSpec]:
    start = next((segment.offset for segment in segments if segment.kind == "delegates"), 0)
    return [
        DelegateSpec(
            flat.text(item.backend),
            bytes(contents[start + item.offset : start + item.offset + item.bytes]),
            tuple(map(int, item.weights)),
            _delegate_ops(item),
        )
        for item in program.delegates or []
    ]


def _delegate_ops(table) -> dict[str, int]:
    if not table.ops:
        return {}
    return {flat.text(op): int(count) for op, count in zip(table.ops, table.opCounts, strict=True)}


def _state(table) -> StateSpec:
    return StateSpec(
        name=flat.text(table.name), kind=flat.inverse(flat.STATE_KINDS)[table.kind], num_heads=table.numHeads,
        head_dim=table.headDim, value_head_dim=table.valueHeadDim, window=table.window,
        num_sink_positions=table.numSinkPositions, shape=tuple(int(size) for size in table.shape),
        stride=table.stride,
    )  # fmt: skip


def _weight(table) -> WeightSpec:
    return WeightSpec(
        sources=tuple(flat.text(table.name).split("+")), shape=tuple(int(size) for size in table.shape),
        dtype=flat.inverse(flat.DTYPES)[table.dtype], bits=table.bits, group_size=table.groupSize,
        scales=_scales(table),
    )  # fmt: skip


def _scales(table) -> TileScales | None:
    if table.scaleColumns == 0:
        return None
    offset = ("none", "minimum", "zero")[table.low]
    codebook = () if table.codebook is None else tuple(int(value) for value in table.codebook)
    return TileScales(table.scaleColumns, offset, table.rowScales, codebook)


def _metadata(program, segments: tuple[flat.SegmentRecord, ...], contents: memoryview) -> Metadata:
    p = program.provenance
    provenance = Provenance(*(
        flat.text(value) for value in (
            p.modelId, p.revision, p.modelType, p.recipe, p.exporterVersion, p.torchVersion, p.transformersVersion,
            p.license,
        )
    ))  # fmt: skip
    stored = {s.kind: bytes(contents[s.offset : s.offset + s.bytes]) for s in segments if s.kind != "weights"}
    golden = tuple(
        GoldenSample(
            flat.text(s.text), tuple(map(int, s.promptIds)), tuple(map(int, s.expectedIds)), tuple(map(int,
            s.probeIds)),
            tuple(map(float, s.probeLogits)), s.tolerance,
        )
        for s in program.goldenSamples
    )  # fmt: skip
    return Metadata(
        provenance, program.vocabSize, program.maxPositionEmbeddings, program.bosTokenId, tuple(map(int,
        program.eosTokenIds)),
        flat.text(program.generationConfig), golden, stored.get("tokenizer", b""), stored.get("chat_template", b""),
        _check(program.check),
    )  # fmt: skip


def _check(table) -> CheckFigures | None:
    if table is None:
        return None
    return CheckFigures(
        flat.text(table.mode), table.medianRelativeError, table.maxRelativeError, table.tolerance, table.top1Agreement,
        table.numPositions,
    )  # fmt: skip
