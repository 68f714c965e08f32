"""A server that drops, truncates and reorders, answers with other ranges and statuses, and changes its file."""

from __future__ import annotations

import random
import struct
import threading
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import flatbuffers

from llm_export.program.flat import FILE_IDENTIFIER, parse
from llm_export.program.header import HEADER_BYTES, MAGIC, Header

PIECE_BYTES = 1 << 16


def enlarged(content: bytes, num_bytes: int, seed: int) -> bytes:
    """Returns a model that runs with about num_bytes more in its last segment, a text."""
    program_bytes = Header.of(content, MAGIC).body_bytes
    program = parse(content[HEADER_BYTES : HEADER_BYTES + program_bytes])
    data = content + random.Random(seed).randbytes(num_bytes // 2).hex().encode()
    last = max(program.segments, key=lambda segment: segment.offset)
    last.bytes = len(data) - last.offset
    last.crc32 = zlib.crc32(data[last.offset :])
    builder = flatbuffers.Builder(program_bytes)
    builder.Finish(program.Pack(builder), file_identifier=FILE_IDENTIFIER)
    packed = bytes(builder.Output())
    start = bytearray(data[: min(segment.offset for segment in program.segments)])
    assert HEADER_BYTES + len(packed) <= len(start)
    start[HEADER_BYTES :] = packed.ljust(len(start) - HEADER_BYTES, b"\0")
    struct.pack_into("<QQI", start, 16, len(packed), len(data), zlib.crc32(packed))
    return bytes(start) + data[len(start) :]


class FaultyServer:
    """Serves `versions` of a file at /file.mote, one of them at a time. A context manager.

    fault_rate: of answers   on_bytes: told after each piece how many bytes were sent in all
    """

    def __init__(self, versions: list[bytes], seed: int, fault_rate: float = 0.5):
        self.versions, self.version, self.fault_rate = versions, 0, fault_rate
        self.random = random.Random(seed)
        self.sent_bytes = 0
        self.on_bytes: Callable[[int], None] = lambda count: None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/file.mote"

    def __enter__(self) -> FaultyServer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: FaultyServer

    def log_message(self, *arguments: object) -> None:
        pass

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True

    def do_GET(self) -> None:
        owner = self.owner
        if len(owner.versions) > 1 and owner.random.random() < 0.1:
            owner.version = owner.random.randrange(len(owner.versions))
        data, etag = owner.versions[owner.version], f'"v{owner.version}"'
        start = int(self.headers.get("Range", "bytes=0-")[6:-1])
        if self.headers.get("If-Range", etag) != etag:
            start = 0
        fault = ""
        if owner.random.random() < owner.fault_rate:
            fault = owner.random.choice(
                ["drop", "truncate", "reorder", "skip", "other range", "no range", "busy", "elsewhere", "416", "flip",
                 "long"]
            )  # fmt: skip
        if fault in ("busy", "416"):
            self._send(503 if fault == "busy" else 416, {"Retry-After": "1"}, b"")
            return
        if fault == "elsewhere":
            self._send(302, {"Location": "/file.mote"}, b"")
            return
        start = {"other range": min(PIECE_BYTES, len(data) - 1), "no range": 0}.get(fault, start)
        headers = {"ETag": etag}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        self._send(206 if start else 200, headers, self._damaged(data[start:], fault), fault)

    def _damaged(self, body: bytes, fault: str) -> bytes:
        at = self.owner.random.randrange(len(body)) if body else 0
        if fault == "reorder":
            return (
                body[:at]
                + body[at + PIECE_BYTES : at + 2 * PIECE_BYTES]
                + body[at : at + PIECE_BYTES]
                + body[at + 2 * PIECE_BYTES :]
            )
        if fault == "skip":
            return body[:at] + body[at + PIECE_BYTES :]
        if fault == "flip":
            return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        return body + body[:at] if fault == "long" else body

    def _send(self, status: int, headers: dict[str, str], body: bytes, fault: str = "") -> None:
        length = len(body) if fault != "truncate" else len(body) // 2
        self.send_response(status)
        for name, value in {"Content-Length": str(length), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        end = self.owner.random.randrange(length) if fault == "drop" and length else length
        for at in range(0, end, PIECE_BYTES):
            self.wfile.write(body[at : min(at + PIECE_BYTES, end)])
            self.owner.sent_bytes += PIECE_BYTES
            self.owner.on_bytes(self.owner.sent_bytes)
        if fault:
            self.close_connection = True
