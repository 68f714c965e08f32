"""Asks a server of the demo model for a long time: its memory must stay, and a crowd must get its first tokens.

python scripts/soak_server.py --requests 10000 --clients 200
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parent.parent
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
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        line = process.stderr.readline()
        found = re.search(r"at (http://\S+)/v1", line)
        if found is None:
            sys.exit(line + process.stderr.read())
        yield process, found[1]
    finally:
        process.terminate()
        process.wait()


async def main(arguments: argparse.Namespace) -> int:
    with serving(arguments.model) as (process, url):
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=url, timeout=600, limits=limits) as client:
            memory = await long_run(client, arguments.requests, process.pid)
            for _ in range(2):  # the second time with sessions that are there
                start = time.monotonic()
                seconds = await crowd(client, arguments.clients)
                speed = arguments.clients * TOKENS / (time.monotonic() - start)
                shown = " ".join(f"p{part} {seconds[len(seconds) * part // 100] * 1000:.0f}" for part in (5, 50, 95))
                print(
                    f"{arguments.clients} clients: first token, ms: {shown} max {seconds[-1] * 1000:.0f}; "
                    f"{speed:.0f} tokens/s; {resident_mib(process.pid)} MiB"
                )
    growth = memory[-1] - memory[len(memory) // 2 - 1]
    print(f"memory grew by {growth} MiB in the second half of the requests; {GROWTH_MIB} are accepted")
    return int(growth > GROWTH_MIB)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=ROOT / "out" / "demo.mote")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=200)
    sys.exit(asyncio.run(main(parser.parse_args())))
