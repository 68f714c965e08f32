"""Attention of one layer beside PyTorch's SDPA and llama.cpp's ggml_flash_attn_ext, at contexts of 256 to 32k.

    cmake --preset release -DMOTE_BUILD_BENCHMARKS=ON && cmake --build --preset release
    python benchmarks/attention.py

A case is some tokens at the end of a context whose keys and values no cache of the CPU holds. Every runtime runs in
fresh processes, one after the other, round after round; the table shows medians of the rounds' medians.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.peers import llama_cpp  # noqa: E402
from benchmarks.peers.environment import ROOT, Environment, PeerError, last_line, say  # noqa: E402

SHAPES = {"llama": (32, 8, 64), "qwen": (16, 8, 128)}  # heads, kv_heads, head_dim: Llama 3.2 1B, Qwen3 0.6B
TYPES = {
    "mote": ("float32", "float16", "int8", "int4"),
    "sdpa": ("float32", "float16"),
    "llama.cpp": ("float32", "float16", "int8", "int4"),
}
RUN_SECONDS = 1800


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    built = Path("build/release/benchmarks/kernels/bench_attention")
    parser.add_argument("--bench", type=Path, default=built, help="Mote's kernel benchmark")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--runtimes", nargs="+", choices=TYPES, default=list(TYPES))
    parser.add_argument("--types", nargs="+", choices=TYPES["mote"], default=list(TYPES["mote"]), help="of the cache")
    parser.add_argument("--contexts", nargs="+", type=int, default=[256, 1024, 4096, 16384, 32768])
    parser.add_argument("--tokens", nargs="+", type=int, default=[1, 256], help="at the end of the context")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path("build/compare"), help="where compare.py keeps llama.cpp")
    parser.add_argument("--json", type=Path, help="file for every measurement")
    options = parser.parse_args(arguments)
    for name in ("contexts", "tokens"):
        if min(getattr(options, name)) < 1:
            parser.error(f"--{name}: must be at least 1")
    if max(options.tokens) > min(options.contexts):
        parser.error("--tokens: must be at most the shortest of --contexts, which contains them")
    if "mote" in options.runtimes and not options.bench.exists():
        parser.error(f"--bench {options.bench}: no such file; build it with: {__doc__.splitlines()[2].strip()}")
    return options


def command(runtime: str, shape: str, options: argparse.Namespace, python: str) -> list[str]:
    """Returns what measures all cases of a runtime and shape, printing one JSON object a line."""
    types = [name for name in TYPES[runtime] if name in options.types]
    lists = {"types": types, "contexts": options.contexts, "tokens": options.tokens, "threads": [options.threads]}
    flags = [text for name, values in lists.items() for text in (f"--{name}", ",".join(map(str, values)))]
    if runtime == "mote":
        return [str(options.bench), "--shapes", shape, *flags]
    module = {"sdpa": "benchmarks.kernels.sdpa", "llama.cpp": "benchmarks.kernels.ggml"}[runtime]
    return [python, "-m", module, "--shape", shape, "--sizes", ",".join(map(str, SHAPES[shape])), *flags]


def measure(runtime: str, shape: str, options: argparse.Namespace, python: str) -> list[dict]:
    run = command(runtime, shape, options, python)
    try:
        found = subprocess.run(run, capture_output=True, text=True, timeout=RUN_SECONDS, check=False, cwd=ROOT)
    except subprocess.TimeoutExpired:
        raise PeerError(f"not done after {RUN_SECONDS} s") from None
    if found.returncode != 0:
        raise PeerError(last_line(found.stderr or found.stdout))
    cases = [json.loads(line) for line in found.stdout.splitlines()]
    return [{"runtime": runtime} | case for case in cases if "us" in case]


def table(cases: list[dict]) -> str:
    """Returns Markdown: a row for each shape, tokens, type and context, microseconds of each runtime."""
    runtimes = [name for name in TYPES if any(case["runtime"] == name for case in cases)]
    times: dict[tuple, dict[str, list[float]]] = {}
    for case in cases:
        key = (case["shape"], case["tokens"], case["type"], case["context"])
        times.setdefault(key, {}).setdefault(case["runtime"], []).append(case["us"])
    lines = [f"| shape | tokens | cache | context | {' | '.join(f'{name}, us' for name in runtimes)} |"]
    lines.append("|---" * (4 + len(runtimes)) + "|")
    for key in sorted(times, key=lambda key: (key[0], key[1], TYPES["mote"].index(key[2]), key[3])):
        figures = [f"{median(times[key][name]):.0f}" if name in times[key] else "" for name in runtimes]
        lines.append(f"| {' | '.join(map(str, key))} | {' | '.join(figures)} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    options.bench = options.bench.resolve()
    pythons = {"mote": "", "sdpa": sys.executable}
    if "llama.cpp" in options.runtimes:
        pythons["llama.cpp"] = Environment(options.work).python("llama.cpp", llama_cpp.PEER.requirements)
    cases = []
    for turn in range(options.rounds):
        for shape in options.shapes:
            for runtime in options.runtimes:
                say(f"round {turn + 1} of {options.rounds}: {shape}, {runtime}")
                try:
                    cases += measure(runtime, shape, options, pythons[runtime])
                except PeerError as error:
                    say(f"{runtime}: {error}")
                if options.json:  # after every process: a long run may be broken off
                    options.json.write_text(json.dumps(cases, indent=1) + "\n")
    print(table(cases))
    return 0 if cases else 1


if __name__ == "__main__":
    sys.exit(main())
