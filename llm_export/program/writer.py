"""Writes `.mote` files, and `.motew` files with the weights of several; docs/file-format.md describes both."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from llm_export.errors import FileError, ProgramError
from llm_export.pieces import PieceWriter
from llm_export.program.flat import SegmentRecord, build, delegate_offsets, parse, rest_offsets, weight_offsets
from llm_export.program.formats import stored_bytes
from llm_export.program.header import HEADER_BYTES, MAGIC, VERSION, Header
from llm_export.program.instructions import MemoryPlan, Metadata
from llm_export.program.replacement import replacing
from llm_export.program.specs import WeightSpec

WEIGHTS_MAGIC = b"MOTW\r\n\x1a\n"
WEIGHTS_VERSION = 1
SEGMENT_ALIGNMENT = 1 << 16  # pages of phones have 16 KiB, what a GPU takes without a copy up to 64
Chunk = bytes | bytearray | memoryview  # or anything with the buffer protocol, such as a contiguous numpy array
WeightBytes = Callable[[WeightSpec], Iterable[Chunk]]


def write_program(
    path: Path, planned: MemoryPlan, metadata: Metadata, weight_bytes: WeightBytes, weights_file: Path | None = None
) -> int:
    """Writes a program file: to a name that `replacing` gives, if the file shall appear whole or not at all.

    weight_bytes: gives a weight's stored bytes in chunks, formats.stored_bytes(spec) in all; called once for each
        weight, in order; not for a program whose asset holds them
    weights_file: where the weights go instead, a `.motew` file in the folder of the program; one that has the same
        weights stays as it is. Errors: FileError if it has others
    Returns: the size of the file. Cost: memory for one chunk
    """
    weights = _weights(planned.program.weights, weight_bytes)
    elsewhere = _write_weights(weights_file, weights) if weights_file is not None else None
    if (asset := planned.program.asset) is not None:
        elsewhere = SegmentRecord("weights", SEGMENT_ALIGNMENT, asset.weights_bytes, asset.checksum, asset.file)
    with PieceWriter(path) as file:
        segments = _SegmentWriter(file, planned, metadata)
        segments.write(elsewhere or weights)
    with open(path, "rb+") as start:
        return segments.write_start(start)


def write_beginning(path: Path, planned: MemoryPlan, metadata: Metadata) -> None:
    """Writes header and program of a file whose weights are nowhere, which `mote advise` takes."""
    _, weights_bytes = weight_offsets(planned.program.weights)
    placeholder = SegmentRecord("weights", 1, 1, 1)
    offset = _next_page(HEADER_BYTES + len(build(planned, metadata, [placeholder])))
    program = build(planned, metadata, [SegmentRecord("weights", offset, weights_bytes, 0)])
    with open(path, "wb") as file:
        _write_start(file, program, offset + weights_bytes)


def _write_weights(path: Path, weights: Iterator[Chunk]) -> SegmentRecord:
    def is_there(new: Path) -> bool:
        if not path.exists():
            return False
        old, made = _weights_header(path), _weights_header(new)
        if old != made:
            raise FileError(
                f"{path}: holds weights of checksum {old[1]:08x}, and this export has others, of checksum "
                f"{made[1]:08x}: give another name, or remove it if no other file needs it"
            )
        return True

    with replacing(path, stays=is_there) as new:
        with PieceWriter(new) as file:
            file.write(bytes(SEGMENT_ALIGNMENT))
            checksum = _write_chunks(file, weights)
            end = file.tell()
        size = end - SEGMENT_ALIGNMENT
        with open(new, "rb+") as start:
            start.write(Header(WEIGHTS_MAGIC, WEIGHTS_VERSION, size, end, checksum).to_bytes())
        record = SegmentRecord("weights", SEGMENT_ALIGNMENT, size, checksum, path.name)
    return record


def _weights_header(path: Path) -> tuple[int, int]:
    """Returns bytes and checksum of the weights in a `.motew` file. Errors: FileError if it is another file"""
    with open(path, "rb") as file:
        header = Header.of(file.read(HEADER_BYTES), WEIGHTS_MAGIC)
    if header is None:
        raise FileError(f"{path}: is there and is no .motew file: give another name")
    if header.version != WEIGHTS_VERSION or header.file_bytes != path.stat().st_size:
        raise FileError(f"{path}: is there and is damaged, or of another version: remove it, or give another name")
    return header.body_bytes, header.checksum


def _write_chunks(file: PieceWriter, chunks: Iterable[Chunk]) -> int:
    """Returns the CRC-32 of what it wrote."""
    checksum = 0
    for chunk in chunks:
        file.write(chunk)
        checksum = zlib.crc32(chunk, checksum)
    return checksum


def write_segment(path: Path, weights: Sequence[WeightSpec], weight_bytes: WeightBytes) -> tuple[int, WeightBytes]:
    """Writes a weights segment to a file of its own.

    Returns: its CRC-32, and what gives the bytes of a weight from there while the file exists
    """
    with PieceWriter(path) as file:
        checksum = _write_chunks(file, _weights(weights, weight_bytes))
    offsets, _ = weight_offsets(weights)
    places = dict(zip(weights, offsets, strict=True))
    return checksum, lambda spec: [np.fromfile(path, np.uint8, stored_bytes(spec), offset=places[spec])]


def _weights(weights: Sequence[WeightSpec], weight_bytes: WeightBytes) -> Iterator[Chunk]:
    """Gives the bytes of the weights segment."""
    offsets, _ = weight_offsets(weights)
    position = 0
    for spec, offset in zip(weights, offsets, strict=True):
        yield bytes(offset - position)
        position = offset
        for chunk in weight_bytes(spec):
            view = memoryview(chunk).cast("B")
            position += view.nbytes
            yield view
        if position != offset + stored_bytes(spec):
            raise ProgramError(
                f"{spec.name}: {position - offset} bytes were produced, the format needs {stored_bytes(spec)}"
            )


def replace_metadata(path: Path, planned: MemoryPlan, metadata: Metadata) -> None:
    """Writes other metadata, which must not be larger, into a file that `write_program` wrote."""
    with open(path, "rb+") as file:
        header = Header.of(file.read(HEADER_BYTES), MAGIC)
        assert header is not None, path
        old_bytes = header.body_bytes
        segments = [SegmentRecord.of(segment) for segment in parse(file.read(old_bytes)).segments]
        program = build(planned, metadata, segments)
        if len(program) > old_bytes:
            raise ProgramError(f"{path}: the metadata takes {len(program) - old_bytes} bytes more than was reserved")
        _write_start(file, program, header.file_bytes)
        file.write(bytes(old_bytes - len(program)))


def _write_start(file: BinaryIO, program: bytes, file_bytes: int) -> None:
    file.seek(0)
    file.write(Header(MAGIC, VERSION, len(program), file_bytes, zlib.crc32(program)).to_bytes())
    file.write(program)


class _SegmentWriter:
    """Streams segments behind the space that the flatbuffer will take; the flatbuffer and the header come last."""

    def __init__(self, file: PieceWriter, planned: MemoryPlan, metadata: Metadata):
        self.file, self.planned, self.metadata = file, planned, metadata
        self.segments: list[SegmentRecord] = []

    def write(self, weights: Iterator[Chunk] | SegmentRecord) -> None:
        """weights: their bytes, or where they are."""
        others = {
            "tokenizer": [self.metadata.tokenizer],
            "chat_template": [self.metadata.chat_template],
            "delegates": self._blobs(),
            "asset_rest": self._rest(),
        }
        others = {kind: chunks for kind, chunks in others.items() if any(chunks)}
        # Numbers have a fixed width, so a program with other numbers in its segments has the same size.
        first = weights if isinstance(weights, SegmentRecord) else SegmentRecord("weights", 1, 1, 1)
        placeholders = [first, *(SegmentRecord(kind, 1, 1, 1) for kind in others)]
        self.start = _next_page(HEADER_BYTES + len(build(self.planned, self.metadata, placeholders)))
        self.file.write(bytes(self.start))
        if isinstance(weights, SegmentRecord):
            self.segments.append(weights)
        else:
            self._segment("weights", weights)
        for kind, chunks in others.items():
            self._segment(kind, chunks)

    def write_start(self, file: BinaryIO) -> int:
        """Writes what comes before the segments into the file once they are there. Returns: the size of the file"""
        file_bytes = self.file.tell()
        program = build(self.planned, self.metadata, self.segments)
        if HEADER_BYTES + len(program) > self.start:
            raise ProgramError(
                f"the program takes {len(program)} bytes, more than the {self.start - HEADER_BYTES} reserved for it"
            )
        _write_start(file, program, file_bytes)
        return file_bytes

    def _segment(self, kind: str, chunks: Iterable[Chunk]) -> None:
        offset = _next_page(self.file.tell())
        self.file.write(bytes(offset - self.file.tell()))
        checksum = _write_chunks(self.file, chunks)
        self.segments.append(SegmentRecord(kind, offset, self.file.tell() - offset, checksum))

    def _blobs(self) -> list[bytes]:
        delegates = self.planned.program.delegates
        return _placed([spec.blob for spec in delegates], delegate_offsets(delegates)[0])

    def _rest(self) -> list[bytes]:
        asset = self.planned.program.asset
        return _placed([weight.rest for weight in asset.weights], rest_offsets(asset)[0]) if asset else []


def _placed(parts: Sequence[bytes], offsets: Sequence[int]) -> list[bytes]:
    """Parts with zeros between them."""
    chunks, position = [], 0
    for part, offset in zip(parts, offsets, strict=True):
        chunks += [bytes(offset - position), part]
        position = offset + len(part)
    return chunks


def _next_page(offset: int) -> int:
    return -(-offset // SEGMENT_ALIGNMENT) * SEGMENT_ALIGNMENT
