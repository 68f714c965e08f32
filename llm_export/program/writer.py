"""Writes `.mote` files; docs/file-format.md describes them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from llm_export.errors import ProgramError
from llm_export.program.flat import (
    SEGMENT_KINDS,
    SegmentRecord,
    build,
    delegate_offsets,
    inverse,
    parse,
    weight_offsets,
)
from llm_export.program.formats import stored_bytes
from llm_export.program.instructions import MemoryPlan, Metadata
from llm_export.program.specs import WeightSpec

MAGIC = b"MOTE\r\n\x1a\n"
VERSION = 4
HEADER = struct.Struct("<8sIIQQI28s")
SEGMENT_ALIGNMENT = 1 << 16  # pages of phones have 16 KiB, what a GPU takes without a copy up to 64
Chunk = bytes | bytearray | memoryview  # or anything with the buffer protocol, such as a contiguous numpy array
WeightBytes = Callable[[WeightSpec], Iterable[Chunk]]


def write_program(path: Path, planned: MemoryPlan, metadata: Metadata, weight_bytes: WeightBytes) -> int:
    """Writes a program file: to a name that `replacing` gives, if the file shall appear whole or not at all.

    weight_bytes: gives a weight's stored bytes in chunks, formats.stored_bytes(spec) in all; called once for each
        weight, in order
    Returns: the size of the file. Cost: memory for one chunk
    """
    with open(path, "wb") as file:
        return _SegmentWriter(file, planned, metadata).write(weight_bytes)


def replace_metadata(path: Path, planned: MemoryPlan, metadata: Metadata) -> None:
    """Writes other metadata, which must not be larger, into a file that `write_program` wrote."""
    with open(path, "rb+") as file:
        _, _, _, old_bytes, file_bytes, _, _ = HEADER.unpack(file.read(HEADER.size))
        segments = [
            SegmentRecord(inverse(SEGMENT_KINDS)[segment.kind], segment.offset, segment.bytes, segment.crc32)
            for segment in parse(file.read(old_bytes)).segments
        ]
        program = build(planned, metadata, segments)
        if len(program) > old_bytes:
            raise ProgramError(f"{path}: the metadata takes {len(program) - old_bytes} bytes more than was reserved")
        _write_start(file, program, file_bytes)
        file.write(bytes(old_bytes - len(program)))


def _write_start(file: BinaryIO, program: bytes, file_bytes: int) -> None:
    file.seek(0)
    file.write(HEADER.pack(MAGIC, VERSION, HEADER.size, len(program), file_bytes, zlib.crc32(program), bytes(28)))
    file.write(program)


class _SegmentWriter:
    """Streams segments behind the space that the flatbuffer will take, then writes the flatbuffer and the header."""

    def __init__(self, file: BinaryIO, planned: MemoryPlan, metadata: Metadata):
        self.file, self.planned, self.metadata = file, planned, metadata
        self.segments: list[SegmentRecord] = []

    def write(self, weight_bytes: WeightBytes) -> int:
        others = {
            "tokenizer": [self.metadata.tokenizer],
            "chat_template": [self.metadata.chat_template],
            "delegates": self._blobs(),
        }
        others = {kind: chunks for kind, chunks in others.items() if any(chunks)}
        # Numbers have a fixed width, so a program with other numbers in its segments has the same size.
        placeholders = [SegmentRecord(kind, 1, 1, 1) for kind in ("weights", *others)]
        start = _next_page(HEADER.size + len(build(self.planned, self.metadata, placeholders)))
        self.file.write(bytes(start))
        self._segment("weights", self._weights(weight_bytes))
        for kind, chunks in others.items():
            self._segment(kind, chunks)
        file_bytes = self.file.tell()
        program = build(self.planned, self.metadata, self.segments)
        if HEADER.size + len(program) > start:
            raise ProgramError(
                f"the program takes {len(program)} bytes, more than the {start - HEADER.size} reserved for it"
            )
        _write_start(self.file, program, file_bytes)
        return file_bytes

    def _segment(self, kind: str, chunks: Iterable[Chunk]) -> None:
        offset = _next_page(self.file.tell())
        self.file.write(bytes(offset - self.file.tell()))
        checksum = 0
        for chunk in chunks:
            self.file.write(chunk)
            checksum = zlib.crc32(chunk, checksum)
        self.segments.append(SegmentRecord(kind, offset, self.file.tell() - offset, checksum))

    def _blobs(self) -> list[bytes]:
        delegates = self.planned.program.delegates
        offsets, _ = delegate_offsets(delegates)
        chunks, position = [], 0
        for spec, offset in zip(delegates, offsets, strict=True):
            chunks += [bytes(offset - position), spec.blob]
            position = offset + len(spec.blob)
        return chunks

    def _weights(self, weight_bytes: WeightBytes) -> Iterator[Chunk]:
        weights = self.planned.program.weights
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


def _next_page(offset: int) -> int:
    return -(-offset // SEGMENT_ALIGNMENT) * SEGMENT_ALIGNMENT
