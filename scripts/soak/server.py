"""A server on its default settings: abused while it is probed, then asked for a long time, then by a crowd."""

from __future__ import annotations

import asyncio
import contextlib
import re
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

import httpx

from scripts.soak.abuse import abuse
from scripts.soak.figures import ROOT, Figure, Size

SIDE_BY_SIDE = 16  # requests of the long run
GROWTH_MIB = 16  # that is accepted in the second half, when what is kept for later requests is full
TOKENS = 32  # of each reply to the crowd


def bodies(number: int) -> tuple[str, dict, bool]:
    """Returns path and body of a request, no two alike, and whether the client leaves in the middle."""
    messages = [{"role": "user", "content": f"What is list {number}? " * (1 + number % 7)}]
    chat = {"messages": messages, "max_tokens": 8, "seed": number}
    kind = number % 8
    if kind == 0:
        return "/v1/completions", {"prompt": f"def f{number}(", "max_tokens": 8, "logprobs": 2}, False
    if kind == 1:
        return "/v1/responses", {"input": messages, "max_output_tokens": 8}, False
    if kind == 2:
        return "/v1/messages", {"model": "demo", "messages": messages, "max_tokens": 8, "stream": True}, False
    if kind == 3:
        return "/api/chat", {"model": "demo", "messages": messages, "options": {"num_predict": 8}}, False
    if kind == 4:
        return "/v1/chat/completions", chat | {"guided_regex": f"[a-f]{{1,4}}{number % 100}"}, False
    if kind == 5:
        return "/v1/chat/completions", chat | {"stream": True, "max_tokens": 200, "ignore_eos": True}, True
    return "/v1/chat/completions", chat | {"stream": kind == 6}, False


async def one(client: httpx.AsyncClient, number: int) -> None:
    path, body, leaves = bodies(number)
    async with client.stream("POST", path, json=body) as answer:
        assert answer.status_code == 200, (path, answer.status_code, await answer.aread())
        async for _ in answer.aiter_bytes():
            if leaves:
                return


async def long_run(client: httpx.AsyncClient, requests: int, pid: int) -> list[int]:
    """Returns the server's resident MiB at ten times."""
    numbers, found, start = count(), [], time.monotonic()

    async def work() -> None:
        while (number := next(numbers)) < requests:
            await one(client, number)
            if number % (requests // 10) == requests // 10 - 1:
                found.append(resident_mib(pid))
                print(f"{number + 1:>8} requests {time.monotonic() - start:8.1f} s {found[-1]:6d} MiB", flush=True)

    await asyncio.gather(*[work() for _ in range(SIDE_BY_SIDE)])
    return found


async def crowd(client: httpx.AsyncClient, clients: int) -> list[float]:
    """Returns the seconds to the first token of clients that come at the same time."""

    async def first_token(number: int) -> float:
        body = {"messages": [{"role": "user", "content": f"What is {number}?"}], "max_tokens": TOKENS, "stream": True}
        start, first = time.monotonic(), 0.0
        async with client.stream("POST", "/v1/chat/completions", json=body | {"ignore_eos": True}) as answer:
            assert answer.status_code == 200, (answer.status_code, await answer.aread())
            async for line in answer.aiter_lines():
                if not first and '"content":"' in line and '"content":""' not in line:
                    first = time.monotonic() - start
        return first

    return sorted(await asyncio.gather(*[first_token(number) for number in range(clients)]))


def resident_mib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 // 2**20


@contextlib.contextmanager
def serving(model: Path):
    """Starts a server with the default settings; gives its process and address."""
    command = [sys.executable, "-m", "mote.cli", "serve", str(model), "--port", "0", "--log-level", "error"]
    with tempfile.NamedTemporaryFile("w") as log:  # a pipe that nobody reads would stop the server
        process = subprocess.Popen(command, stderr=log, cwd=ROOT)
        try:
            while (found := re.search(r"at (http://\S+)/v1", Path(log.name).read_text())) is None:
                if process.poll() is not None:
                    sys.exit(Path(log.name).read_text())
                time.sleep(0.05)
            yield process, found[1]
        finally:
            process.terminate()
            process.wait()
            sys.stderr.write(Path(log.name).read_text().partition("Ctrl-C ends it.\n")[2])


def abused(size: Size) -> list[Figure]:
    """R19: what clients should not send, while a probe asks for its health every 20 ms."""
    with serving(size.model) as (process, url):
        return abuse(url, size, lambda: resident_mib(process.pid))


def asked_for_long(size: Size) -> list[Figure]:
    """R20: memory over 10,000 requests of all kinds; and what 200 clients get that come at the same time."""
    requests, clients = max(10, size.count(10_000)), size.count(200)

    async def ask(process, url) -> list[Figure]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=url, timeout=600, limits=limits) as client:
            memory = await long_run(client, requests, process.pid)
            shown = " ".join(map(str, memory))
            half = memory[len(memory) // 2 - 1]
            what = f"{requests:,} requests, {SIDE_BY_SIDE} side by side"
            found = f"resident MiB after each tenth: {shown}; the second half grew by {memory[-1] - half}"
            figures = [Figure("R20", what, found, memory[-1] - half <= GROWTH_MIB)]
            for when in ("cold", "again"):  # the second time with sessions that are there
                start = time.monotonic()
                seconds = await crowd(client, clients)
                speed = clients * TOKENS / (time.monotonic() - start)
                parts = ", ".join(f"p{part} {seconds[len(seconds) * part // 100]:.2f}" for part in (5, 50, 95))
                found = (
                    f"none refused; first token after s: {parts}, last {seconds[-1]:.2f}; {speed:.0f} tokens/s in all"
                )
                figures.append(Figure("R20", f"{clients} clients at once, {when}", found, min(seconds) > 0))
        return figures

    with serving(size.model) as (process, url):
        return asyncio.run(ask(process, url))


SUBJECTS = {"R19": abused, "R20": asked_for_long}
