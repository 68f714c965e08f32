"""Mote beside its peers: the same shapes, threads, bits and tokens, interleaved, with the machine's limits.

    python benchmarks/compare.py --json build/compare/report.json
    python benchmarks/compare.py --backend vulkan

Installs each peer from PyPI into an environment of its own below --work, makes random checkpoints of the real shapes,
converts them for each peer and runs them one after the other, round after round, each run in a fresh process. A
second run reuses what is there. A peer that cannot be installed, converted for or run is reported as such.
Definitions and caveats: docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from statistics import median

if not __package__:
    # Run as a script: the root instead of this folder, whose file names must not shadow what they import.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks import report  # noqa: E402
from benchmarks.peers import Peer, all_peers  # noqa: E402
from benchmarks.peers.environment import Environment, PeerError, evict, folder_bytes, read_through, say  # noqa: E402
from benchmarks.peers.mote import FILE, KV_DTYPE  # noqa: E402
from benchmarks.shapes import SHAPES, WHOLE  # noqa: E402

ROUNDS, QUICK_ROUNDS = 5, 3
QUICK_SECONDS = 480  # after which --quick begins no more rounds, so that it ends within ten minutes
RUN_SECONDS = 600
UNTOLD = "; with all vectors of this CPU, since it cannot be told otherwise"
PLOT_REQUIREMENTS = ("matplotlib",)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--models", type=names_of(SHAPES), default=list(WHOLE), help="comma-separated shapes")
    peers = all_peers()
    backends = list(dict.fromkeys(peer.backend for peer in peers.values()))
    parser.add_argument("--backend", choices=backends, default=backends[0], help="that the runtimes use")
    parser.add_argument("--peers", type=names_of(peers), help="comma-separated runtimes (default: all of the backend)")
    parser.add_argument("--threads", type=_positive, default=physical_cores(), help="of every runtime")
    parser.add_argument("--prompt-tokens", type=_positive, default=256, help="tokens of the prompt")
    parser.add_argument("--generate-tokens", type=_at_least_two, default=256, help="tokens to generate")
    parser.add_argument("--rounds", type=_positive, help=f"processes a runtime and shape (default: {ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="three rounds, ten minutes at most once peers are there")
    parser.add_argument("--work", type=Path, default=Path("build/compare"), help="folder for everything that is made")
    parser.add_argument("--json", type=Path, help="report to write (default: WORK/report.json)")
    parser.add_argument("--markdown", type=Path, help="table to write (default: beside the report)")
    parser.add_argument("--plot", type=Path, help="roofline plot to write (default: beside the report)")
    parser.add_argument("--kv-dtype", choices=report.KV_ELEMENT_BYTES, default="float16", help="of Mote's cache")
    parser.add_argument("--no-amx", action="store_true", help="refuse AMX to every runtime: vector units only")
    parser.add_argument("--avx2", action="store_true", help="AVX2 only, for every runtime that can be told")
    parser.add_argument("--lock", type=Path, help="file to flock while measuring, for machines that are shared")
    options = parser.parse_args(arguments)
    options.peers = options.peers or [peer.name for peer in peers.values() if peer.backend == options.backend]
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    options.json = options.json or options.work / "report.json"
    options.markdown = options.markdown or options.json.with_suffix(".md")
    options.plot = options.plot or options.json.with_suffix(".png")
    return options


def names_of(known: Collection[str]):
    """Returns the type of an argument that names some of these, separated by commas."""

    def split(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r}: must be one of {', '.join(known)}")
        if not names:
            raise argparse.ArgumentTypeError(f"nothing named: must be some of {', '.join(known)}")
        return list(dict.fromkeys(names))

    return split


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: must be an integer of at least 1")
    return int(text)


def _at_least_two(text: str) -> int:
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r}: must be an integer of at least 2")
    return int(text)


def physical_cores() -> int:
    """Returns the cores that this process may use, those that share one counted once."""
    usable = os.sched_getaffinity(0)
    siblings = set()
    for cpu in usable:
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        siblings.add(path.read_text().strip() if path.exists() else str(cpu))
    return len(siblings)


def cpu_name() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def with_cache(peer: Peer, kv_dtype: str) -> Peer:
    """Returns Mote with that element type of its cache, and any other runtime as it is."""
    if peer.name not in report.OURS:
        return peer
    return replace(peer, cache=kv_dtype, settings=peer.settings | {KV_DTYPE: kv_dtype})


def with_avx2(peer: Peer) -> Peer:
    """Returns the peer without vector instructions newer than AVX2, or as it is where it cannot be told."""
    return replace(peer, settings=peer.settings | (peer.avx2 or {}))


def prepared(environment: Environment, peer: Peer, model: str) -> tuple[str, Path]:
    """Returns a peer's interpreter and what it runs from, made if they are not there. Errors: PeerError"""
    build = peer.settings.get("CMAKE_ARGS")
    name = f"{peer.name}-avx2" if build and peer.avx2 else peer.name
    python = environment.python(name, peer.requirements, peer.without, build)
    return python, environment.convert(peer, model, python)


class Contest:
    """One comparison: what takes part, and what each run reported."""

    def __init__(self, environment: Environment, options: argparse.Namespace):
        self._environment = environment
        self._options = options
        self._pythons: dict[str, str] = {}
        self._folders: dict[tuple[str, str], Path] = {}
        self._file_bytes: dict[tuple[str, str], int] = {}  # before a runtime keeps files of its own beside them
        self._errors: dict[tuple[str, str], str] = {}
        self._runs: dict[tuple[str, str], list[dict]] = {}
        self._steps: dict[tuple[str, str], dict] = {}
        self._limits: list[dict] = []
        self._limits_error = ""
        self._peers = [
            with_cache(peer, options.kv_dtype) for peer in all_peers().values() if peer.name in options.peers
        ]
        if options.avx2:
            self._peers = [with_avx2(peer) for peer in self._peers]

    def prepare(self) -> None:
        """Installs and converts; what fails is remembered and left out."""
        for peer in self._peers:
            for model in self._options.models:
                try:
                    python, folder = prepared(self._environment, peer, model)
                    self._pythons[peer.name], self._folders[peer.name, model] = python, folder
                    self._file_bytes[peer.name, model] = folder_bytes(folder)
                except PeerError as error:
                    self._fail(peer, model, error)

    def race(self) -> None:
        """Measures limits, then every runtime on every shape, `rounds` times."""
        started, longest = time.monotonic(), 0.0
        for index in range(self._options.rounds):
            begun = time.monotonic()
            if self._options.quick and index > 0 and begun - started + longest > QUICK_SECONDS:
                say(f"stopping after {index} rounds: a quick run has ten minutes")
                break
            say(f"round {index + 1} of {self._options.rounds}")
            self._round(index)
            longest = max(longest, time.monotonic() - begun)

    def _round(self, index: int) -> None:
        for model in self._options.models:
            self._measure_limits()
            # The order turns, so that no runtime always follows the same one.
            shift = index % len(self._peers)
            for peer in self._peers[shift:] + self._peers[:shift]:
                if (peer.name, model) in self._folders and (peer.name, model) not in self._errors:
                    self._measure(peer, model)

    def count_steps(self) -> None:
        """Has Mote say, for each shape that ran on a GPU, what one call and one step hand to it."""
        options = self._options
        for peer in self._peers:
            for model in options.models if peer.name in report.OURS and peer.backend != "cpu" else ():
                if (peer.name, model) not in self._runs:
                    continue
                file = self._folders[peer.name, model] / FILE
                lengths = options.prompt_tokens, options.prompt_tokens + options.generate_tokens // 2
                try:
                    found = self._environment.profile(file, peer.backend, options.threads, *lengths)
                    self._steps[peer.name, model] = report.steps(found)
                except PeerError as error:
                    say(f"{model} {peer.name}: no profile: {error}")

    def _measure_limits(self) -> None:
        try:
            settings = all_peers()[report.OURS[0]].avx2 if self._options.avx2 else None
            self._limits.append(self._environment.limits(self._options.threads, settings))
        except PeerError as error:
            self._limits_error = str(error)

    def _measure(self, peer: Peer, model: str) -> None:
        options, folder = self._options, self._folders[peer.name, model]
        counts = {
            "--threads": options.threads,
            "--prompt-tokens": options.prompt_tokens,
            "--generate-tokens": options.generate_tokens,
            "--vocab-size": SHAPES[model]["vocab_size"],
        }
        arguments = [str(folder), *(str(item) for pair in counts.items() for item in pair)]
        arguments += ["--no-amx"] if options.no_amx else []
        python = self._pythons[peer.name]
        try:
            evict(folder)
            started = self._environment.run(peer, python, [*arguments, "--start-only"], model, RUN_SECONDS)
            read_through(folder)
            measured = self._environment.run(peer, python, arguments, model, RUN_SECONDS)
        except PeerError as error:
            self._fail(peer, model, error)
            return
        run = measured.report | {
            "cold_start_seconds": started.report["start_seconds"],
            "prompt_tokens": options.prompt_tokens,
            "decode_steps": options.generate_tokens - 1,
            "private_mb": measured.private_mb,
            "file_backed_mb": measured.file_backed_mb,
        }
        self._runs.setdefault((peer.name, model), []).append(run)
        prefill, decode = options.prompt_tokens / run["prefill_seconds"], run["decode_steps"] / run["decode_seconds"]
        say(f"{model} {peer.name}: prefill {prefill:.1f}, decode {decode:.1f} tok/s")

    def _fail(self, peer: Peer, model: str, error: PeerError) -> None:
        say(f"{model} {peer.name}: {error}")
        self._errors[peer.name, model] = str(error)

    def document(self) -> dict:
        """Returns the report."""
        rows = [self._row(peer, model) for model in self._options.models for peer in self._peers]
        limits = None
        if self._limits:
            limits = {name: median(found[name] for found in self._limits) for name in ("read_gb_s", "int8_gmac_s")}
        setup = {
            "threads": self._options.threads,
            "prompt_tokens": self._options.prompt_tokens,
            "generate_tokens": self._options.generate_tokens,
            "cpu": cpu_name(),
            "amx": not self._options.no_amx and not self._options.avx2,
            "avx2_only": self._options.avx2,
            "limits_error": self._limits_error,
            "limits_measured": self._limits,
        }
        return report.document(rows, limits, setup)

    def _row(self, peer: Peer, model: str) -> dict:
        python = self._pythons.get(peer.name)
        facts = {
            "version": self._environment.version(python, peer.distribution) if python else "",
            "head": peer.head,
            "cache": peer.cache,
            "conversion": peer.conversion + (UNTOLD if self._options.avx2 and peer.avx2 is None else ""),
        }
        runs = self._runs.get((peer.name, model), [])
        if not runs:
            return report.failed_row(model, peer.name, self._errors.get((peer.name, model), "not run"), facts)
        row = report.row(model, peer.name, runs, self._file_bytes[peer.name, model], facts)
        return row | {"steps": self._steps.get((peer.name, model))}


def plot(environment: Environment, options: argparse.Namespace) -> None:
    """Draws the plot in an environment that has matplotlib; says so where that fails."""
    try:
        python = environment.python("plot", PLOT_REQUIREMENTS)
        paths = (str(path.resolve()) for path in (options.json, options.plot))
        environment.call("plot", [python, "-m", "benchmarks.plot", *paths])
    except PeerError as error:
        say(f"no plot: {error}")


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    environment = Environment(options.work, options.lock)
    contest = Contest(environment, options)
    contest.prepare()
    contest.race()
    contest.count_steps()
    found = contest.document()
    text = report.table(found)
    for path in (options.json, options.markdown, options.plot):
        path.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(found, indent=2) + "\n")
    options.markdown.write_text(text)
    plot(environment, options)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
