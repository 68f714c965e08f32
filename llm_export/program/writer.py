"""Writes `.mote` files; docs/file-format.md describes them."""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from llm_export.errors import FileError, ProgramError
from llm_export.program.flat import SegmentRecord, build, delegate_offsets, weight_offsets
from llm_export.program.formats import stored_bytes
from llm_export.program.instructions import MemoryPlan, Metadata
from llm_export.program.specs import WeightSpec

MAGIC = b"MOTE\r\n\x1a\n"
VERSION = 3
HEADER = struct.Struct("<8sIIQQI28s")
PAGE_BYTES = 4096
Chunk = bytes | bytearray | memoryview  # or anything with the buffer protocol, such as a contiguous numpy array
WeightBytes = Callable[[WeightSpec], Iterable[Chunk]]


def write_program(
    path: str | Path,
    planned: MemoryPlan,
    metadata: Metadata,
    weight_bytes: WeightBytes,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Writes a whole program file, or nothing: it appears under its name only when it is complete and on the disk.

    weight_bytes: gives a weight's stored bytes in chunks,
    formats.stored_bytes(spec) in all; called once for each weight, in order
    progress: called with (weights bytes written, weights bytes in all)
    Returns: the size of the file. Errors: FileError if it cannot be written. Cost: memory for one chunk
    """
    path = Path(path)
    with _replacing(path) as file:
        writer = _SegmentWriter(file, planned, metadata, progress)
        return writer.write(weight_bytes)


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """Opens a temporary file beside `path` that takes its name if the block succeeds, and is removed if not."""
    temporary = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    if path.is_dir():
        raise FileError(f"{path}: is a folder: give the name of a file to write")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Makes the new name itself survive a crash; not every system can sync a folder."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class _SegmentWriter:
    """Streams segments behind the space that the flatbuffer will take, then writes the flatbuffer and the header."""

    def __init__(
        self, file: BinaryIO, planned: MemoryPlan, metadata: Metadata, progress: Callable[[int, int], None] | None
    ):
        self.file, self.planned, self.metadata, self.progress = file, planned, metadata, progress
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
        self.file.seek(0)
        self.file.write(
            HEADER.pack(MAGIC, VERSION, HEADER.size, len(program), file_bytes, zlib.crc32(program), bytes(28))
        )
        self.file.write(program)
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
        offsets, total = weight_offsets(weights)
        position = 0
        for spec, offset in zip(weights, offsets, strict=True):
            yield bytes(offset - position)
            position = offset
            for chunk in weight_bytes(spec):
                view = memoryview(chunk).cast("B")
                position += view.nbytes
                yield view
                if self.progress is not None:
                    self.progress(position, total)
            if position != offset + stored_bytes(spec):
                raise ProgramError(
                    f"{spec.name}: {position - offset} bytes were produced, the format needs {stored_bytes(spec)}"
                )


def _next_page(offset: int) -> int:
    return -(-offset // PAGE_BYTES) * PAGE_BYTES
