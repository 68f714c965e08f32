"""Files that are written in large pieces."""

from __future__ import annotations

import io
from pathlib import Path

PIECE_BYTES = 1 << 22  # a multiple of large pages, which have 2 MiB


class PieceWriter:
    """A new file, written in pieces of PIECE_BYTES at multiples of it.

    Linux keeps what is written at once in as large pages as fit it, and reads of a mapped file from those take two
    thirds of the time on a virtual machine. In small pieces a file would have small pages until it comes from the disk
    again.
    Lifetime: a context manager; what was written is in the file at its end, also where an exception ends it
    """

    def __init__(self, path: Path, mode: str = "wb"):
        """mode: "wb" or "ab", as of open"""
        self._file = io.FileIO(path, mode)
        self._position = self._file.seek(0, 2)
        self._piece = bytearray()

    def __enter__(self) -> PieceWriter:
        return self

    def __exit__(self, *_: object) -> None:
        with self._file:
            self.flush()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        view = memoryview(data).cast("B")
        while view.nbytes:
            room = PIECE_BYTES - (self._position % PIECE_BYTES)
            part, view = view[:room], view[room:]
            self._piece += part
            self._position += part.nbytes
            if part.nbytes == room:
                self.flush()

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        view = memoryview(self._piece)
        while view:
            view = view[self._file.write(view) :]
        self._piece = bytearray()
