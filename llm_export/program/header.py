"""The first 64 bytes of Mote's files: programs (`.mote`), weights of several (`.motew`), adapters (`.mote-adapter`)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

MAGIC = b"MOTE\r\n\x1a\n"  # of programs
VERSION = 5
LAYOUT = struct.Struct("<8sIIQQI28s")
HEADER_BYTES = LAYOUT.size


@dataclass(frozen=True)
class Header:
    """body_bytes: of what its checksum, a CRC-32, is of: the flatbuffer behind the header, or the weights"""

    magic: bytes
    version: int
    body_bytes: int
    file_bytes: int
    checksum: int
    header_bytes: int = HEADER_BYTES

    @classmethod
    def of(cls, start: bytes | memoryview, magic: bytes) -> Header | None:
        """Returns: what the first bytes of a file say; None: they are not those of such a file"""
        if len(start) < HEADER_BYTES or bytes(start[: len(magic)]) != magic:
            return None
        magic, version, header_bytes, body_bytes, file_bytes, checksum, _ = LAYOUT.unpack(start[:HEADER_BYTES])
        return cls(magic, version, body_bytes, file_bytes, checksum, header_bytes)

    def to_bytes(self) -> bytes:
        words = (self.magic, self.version, self.header_bytes, self.body_bytes, self.file_bytes, self.checksum)
        return LAYOUT.pack(*words, bytes(28))
