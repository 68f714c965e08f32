"""What clients should not send to a server. Each is refused or let go, and others are answered meanwhile."""

from __future__ import annotations

import contextlib
import gzip
import json
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx

from scripts.soak.figures import Figure, Size

PROBE_SECONDS = 0.02
SLOWEST_PROBE = 1.0  # seconds that are promised
WAIT = 40  # longer than any time limit of the server
CHAT = {"messages": [{"role": "user", "content": "What is a list?"}], "max_tokens": 4}
FIELDS = [
    "n",
    "max_tokens",
    "top_k",
    "temperature",
    "top_p",
    "seed",
    "top_logprobs",
    "min_tokens",
    "logit_bias",
    "stop",
]
VALUES = ["-1", "2147483648", "9223372036854775808", "-9223372036854775809", "1e999", "NaN", "[]", "{}", "true", '"x"']
PATHS = [
    "/../../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/v1/models/..%2f..%2fetc%2fpasswd",
    "/assets/../../pyproject.toml",
    "//etc/passwd",
]


class Probe:
    """Asks for the server's health all the time and keeps the slowest answer."""

    def __init__(self, url: str):
        self.slowest, self.answers, self._url, self._ends = 0.0, 0, url, threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Probe:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._ends.set()
        self._thread.join()

    def _ask(self) -> None:
        with httpx.Client(base_url=self._url, timeout=WAIT) as client:
            while not self._ends.wait(PROBE_SECONDS):
                start = time.monotonic()
                client.get("/health").raise_for_status()
                self.slowest = max(self.slowest, time.monotonic() - start)
                self.answers += 1


class Attacker:
    def __init__(self, url: str):
        parts = urlsplit(url)
        self.address, self.url = (parts.hostname, parts.port), url
        self.head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n".encode()
        )

    def raw(self, data: bytes) -> int:
        """Sends bytes; returns the answer's status, 0 if the connection is closed without one."""
        with socket.create_connection(self.address, timeout=WAIT) as connection:
            answer = b""
            with contextlib.suppress(ConnectionError):
                connection.sendall(data)
                while b"\r\n" not in answer and (part := connection.recv(65536)):
                    answer += part
        return int(answer.split(b" ", 2)[1]) if answer else 0

    def post(self, body: bytes | str, **headers: str) -> int:
        content = body if isinstance(body, bytes) else body.encode()
        sent = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()).encode()
        return self.raw(self.head + sent + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(content) + content)


def abuse(url: str, size: Size, resident_mib: Callable[[], int]) -> list[Figure]:
    attacker = Attacker(url)
    memory, figures = [], []
    for what, cases in CASES.items():
        with Probe(url) as probe:
            statuses = list(cases(attacker, size))
        wrong = [status for status in statuses if status >= 500 and status != 503]
        found = f"{len(statuses)} cases, {_counted(statuses)}; slowest probe {probe.slowest * 1000:.0f} ms"
        figures.append(Figure("R19", what, found, not wrong and probe.slowest < SLOWEST_PROBE))
    for _ in range(3):  # what the server keeps for later requests is there after the first time
        memory.append(resident_mib())
        for cases in (_bad_json, _strangers, _leaving, _slow):
            for _ in cases(attacker, size):
                pass
    memory.append(resident_mib())
    shown = ", ".join(map(str, memory))
    figures.append(Figure("R19", "memory, again and again", f"{shown} MiB", memory[-1] - memory[1] < 16))
    return figures


def _counted(statuses: list[int]) -> str:
    names = {0: "closed"}
    return ", ".join(f"{statuses.count(one)} {names.get(one, one)}" for one in sorted(set(statuses)))


def _bad_json(attacker: Attacker, size: Size) -> Iterator[int]:
    body = json.dumps(CHAT | {"stop": ["x"], "logit_bias": {"5": 1.5}})
    for length in range(len(body)):
        yield attacker.post(body[:length])
    for at in range(0, len(body), max(1, round(0.2 / size.share))):
        yield attacker.post(body[:at] + "\x00" + body[at + 1 :])
    for depth in (129, 5_000, 100_000):
        yield attacker.post("[" * depth + "]" * depth)
        yield attacker.post('{"messages":' + "[" * depth)


def _numbers(attacker: Attacker, size: Size) -> Iterator[int]:
    for field in FIELDS:
        for value in VALUES:
            text = json.dumps(CHAT)
            yield attacker.post(f'{text[:-1]}, "{field}": {value}}}')


def _bodies(attacker: Attacker, size: Size) -> Iterator[int]:
    yield attacker.raw(attacker.head + b"Content-Length: 99999999999\r\n\r\n{")
    yield attacker.raw(attacker.head + b"Content-Length: -5\r\n\r\n{}")
    yield attacker.raw(attacker.head + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}")
    yield attacker.raw(attacker.head + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n{}\r\n0\r\n\r\n")
    yield attacker.raw(attacker.head + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n0\r\n\r\n")
    yield attacker.raw(attacker.head + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n")
    yield attacker.raw(attacker.head + b"Transfer-Encoding: chunked\r\n\r\n" + b"10000\r\n" + b"x" * 65536 + b"\r\n")
    endless = b"Transfer-Encoding: chunked\r\n\r\n" + (b"10000\r\n" + b" " * 65536 + b"\r\n") * size.count(1000)
    yield attacker.raw(attacker.head + endless)
    yield attacker.post(gzip.compress(b" " * 50_000_000), Content_Encoding="gzip")
    for count in (200, 100_000):
        yield attacker.raw(attacker.head + b"".join(b"X-%d: y\r\n" % number for number in range(count)) + b"\r\n")
    yield attacker.raw(attacker.head + b"X: " + b"y" * 10_000_000 + b"\r\n\r\n")
    yield attacker.raw(b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n\r\n")
    for garbage in (
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"\x00" * 1000,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ):
        yield attacker.raw(garbage)


def _strangers(attacker: Attacker, size: Size) -> Iterator[int]:
    for host in ("evil.example", "localhost.evil.example", "[", "127.0.0.1.evil.example", "localhost@evil.example"):
        yield attacker.raw(f"GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    for origin in ("http://evil.example", "null", "http://localhost:1", "file://"):
        yield attacker.post(json.dumps(CHAT), Origin=origin)
    for path in PATHS:
        yield attacker.raw(f"GET {path} HTTP/1.1\r\nHost: {attacker.address[0]}\r\nConnection: close\r\n\r\n".encode())
    for name in ("../../etc/passwd", "/etc/passwd", "\x00", "a" * 100_000):
        yield attacker.post(json.dumps(CHAT | {"model": name}))


def _leaving(attacker: Attacker, size: Size) -> Iterator[int]:
    """Leaves after each streamed event, and in the middle of sending."""
    body = CHAT | {"stream": True, "max_tokens": 400, "ignore_eos": True}
    with httpx.Client(base_url=attacker.url, timeout=WAIT) as client:
        for events in range(size.count(100)):
            with client.stream("POST", "/v1/chat/completions", json=body) as answer:
                lines = answer.iter_lines()
                for _ in range(events):
                    next(lines)
                yield answer.status_code
    whole = attacker.head + b"Content-Length: 9999\r\n\r\n" + json.dumps(body).encode()
    for length in range(0, len(whole), 4):
        with socket.create_connection(attacker.address) as connection:
            connection.sendall(whole[:length])
        yield 0


def _slow(attacker: Attacker, size: Size) -> Iterator[int]:
    """Connections that say nothing, or a byte a second: of headers and of bodies."""
    most = min(size.count(10_000), resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100)
    held = []
    try:
        for number in range(most):
            with contextlib.suppress(OSError):
                held.append(socket.create_connection(attacker.address, timeout=WAIT))
                if number % 4 == 1:
                    held[-1].sendall(b"GET /health HT")
                elif number % 4 == 2:
                    held[-1].sendall(attacker.head + b"Content-Length: 100\r\n\r\n{")
            if number % 512 == 511:
                time.sleep(PROBE_SECONDS)
        for _ in range(20):
            for connection in held[1::4][:200]:
                with contextlib.suppress(OSError):
                    connection.sendall(b"x")
            time.sleep(0.5 * min(1, 5 * size.share))
    finally:
        for connection in held:
            connection.close()
    yield from [0] * len(held)


CASES = {
    "JSON cut and damaged at each byte": _bad_json,
    "numbers out of range": _numbers,
    "bodies and headers": _bodies,
    "other hosts, other sites, other files": _strangers,
    "clients that leave": _leaving,
    "connections that wait": _slow,
}
