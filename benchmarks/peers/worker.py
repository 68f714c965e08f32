"""The command line of a peer's module, run inside the peer's environment.

    python -m benchmarks.peers.NAME convert CHECKPOINT FOLDER
    python -m benchmarks.peers.NAME run FOLDER --threads 2 --prompt-tokens 256 --generate-tokens 256 --vocab-size V
                                              [--no-amx] [--start-only]

`run` prints one line of JSON, the last on standard output. Every runtime is timed by the same two intervals: from
handing over the prompt to knowing the first token, and from there to knowing the last one. Nothing here needs more
than the standard library, so that it runs in any environment.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from benchmarks.peers import tiles

WARM_UP_TOKENS = 8


class Generator(Protocol):
    """A loaded model. Greedy, and never stopped by an end-of-sequence token."""

    def generate(self, prompt: list[int], count: int) -> tuple[list[int], list[float]]:
        """Generates from an empty context.

        Returns: `count` ids, and the value of time.perf_counter() at which each of them was known; a runtime that
        cannot tell for those between may repeat the last one's, but the first and the last are true
        """


def prompt_ids(count: int, vocab_size: int, seed: int) -> list[int]:
    """Returns pseudo-random ids, the same ones for the same seed."""
    draw = random.Random(seed)
    return [draw.randrange(vocab_size) for _ in range(count)]


def resident() -> dict[str, float]:
    """Returns private and file-backed resident memory of this process, in MB (10^6 bytes)."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    names = {"private_mb": "RssAnon", "file_backed_mb": "RssFile"}
    return {name: int(fields[field].split()[0]) * 1024 / 1e6 for name, field in names.items()}


def measure(generator: Generator, prompt: list[int], count: int) -> dict:
    """Runs one generation. Returns seconds of the two intervals, and the ids."""
    started = time.perf_counter()
    ids, times = generator.generate(prompt, count)
    if len(ids) != count:
        raise RuntimeError(f"generated {len(ids)} tokens instead of {count}")
    return {"prefill_seconds": times[0] - started, "decode_seconds": times[-1] - times[0], "ids": ids}


def run(load: Callable[..., Generator], options: argparse.Namespace) -> dict:
    """Loads, warms up with a prompt of the same length and a few tokens, measures one generation."""
    before = resident()
    started = time.perf_counter()
    generator = load(options.folder, options.threads, options.prompt_tokens + options.generate_tokens)
    load_seconds = time.perf_counter() - started
    # Another prompt: a runtime that keeps prefixes must not find the measured one.
    warm_up, prompt = (prompt_ids(options.prompt_tokens, options.vocab_size, seed) for seed in (1, 2))
    generator.generate(warm_up, min(WARM_UP_TOKENS, options.generate_tokens))
    measured = measure(generator, prompt, options.generate_tokens)
    return measured | {"load_seconds": load_seconds, "before_load": before, "after": resident()}


def start(load: Callable[..., Generator], options: argparse.Namespace) -> dict:
    """Loads and generates one token from a prompt of one. Returns start_seconds."""
    started = time.perf_counter()
    generator = load(options.folder, options.threads, options.prompt_tokens + options.generate_tokens)
    generator.generate(prompt_ids(1, options.vocab_size, seed=1), 1)
    return {"start_seconds": time.perf_counter() - started}


def call(command: list[str], folder: Path | None = None) -> None:
    """Runs a converter's own program in a folder; if that fails ends this process, so that its message is the last in
    the log."""
    status = subprocess.call(command, cwd=folder)
    if status != 0:
        raise SystemExit(status)


def main(convert: Callable[[Path, Path], None], load: Callable[..., Generator]) -> None:
    parser = argparse.ArgumentParser()
    verbs = parser.add_subparsers(dest="verb", required=True)
    converting = verbs.add_parser("convert")
    converting.add_argument("checkpoint", type=Path)
    converting.add_argument("folder", type=Path)
    running = verbs.add_parser("run")
    running.add_argument("folder", type=Path)
    for name in ("--threads", "--prompt-tokens", "--generate-tokens", "--vocab-size"):
        running.add_argument(name, type=int, required=True)
    running.add_argument("--no-amx", action="store_true")
    running.add_argument("--start-only", action="store_true")
    options = parser.parse_args()
    if options.verb == "convert":
        convert(options.checkpoint, options.folder)
    else:
        if options.no_amx:
            tiles.refuse()
        print(json.dumps((start if options.start_only else run)(load, options)), flush=True)
