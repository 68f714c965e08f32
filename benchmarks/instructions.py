"""What a token costs in instructions and in bytes of memory, for Mote and its peers: a proxy for energy.

    python benchmarks/instructions.py --models qwen3-0.6b --peers mote,llama.cpp,onnxruntime-genai,openvino-genai

Runs each under valgrind's cachegrind with one thread, with few and with more tokens, and prints what a further token
takes. Valgrind counts, so that nothing depends on the load of the machine, and shows every program a CPU with AVX2
and nothing newer. Bytes are lines that a simulated last cache of 32 MB has to fetch, 64 bytes each. Environments and
converted files are those of compare.py.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.compare import names_of, prepared, with_avx2  # noqa: E402
from benchmarks.peers import Peer, all_peers  # noqa: E402
from benchmarks.peers.environment import Environment, PeerError, say, variables  # noqa: E402
from benchmarks.shapes import SHAPES  # noqa: E402

LAST_CACHE = 32 << 20
LINE = 64
SECONDS = 3600
# The worker generates 8 tokens from another prompt first, in each of these.
FEW_PROMPT, MORE_PROMPT = 16, 48
FEW_TOKENS, MORE_TOKENS = 9, 13


@dataclass(frozen=True)
class Count:
    """Of a whole process, or of one token."""

    instructions: float
    bytes: float

    def of_further(self, fewer: Count, tokens: int) -> Count:
        """Returns what each of `tokens` more than in `fewer` took."""
        return Count((self.instructions - fewer.instructions) / tokens, (self.bytes - fewer.bytes) / tokens)


def parse_count(text: str) -> Count:
    """Returns what cachegrind's summary says. Errors: PeerError if it says nothing"""
    found = [re.search(rf"{name}:\s+([\d,]+)", text) for name in (r"I\s+refs", r"LL misses")]
    if None in found:
        raise PeerError(f"valgrind: {text.strip().splitlines()[-1] if text.strip() else 'no output'}")
    instructions, misses = (int(match[1].replace(",", "")) for match in found)
    return Count(instructions, misses * LINE)


def count(python: str, peer: Peer, folder: Path, model: str, prompt: int, tokens: int) -> Count:
    """Runs a peer once under cachegrind. Errors: PeerError"""
    cachegrind = ("valgrind", "--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null")
    counts = {"--prompt-tokens": prompt, "--generate-tokens": tokens, "--vocab-size": SHAPES[model]["vocab_size"]}
    command = [*cachegrind, f"--LL={LAST_CACHE},16,{LINE}", "--smc-check=all-non-file", python, "-m", peer.module]
    command += ["run", str(folder), "--threads", "1", *(str(item) for pair in counts.items() for item in pair)]
    try:
        found = subprocess.run(
            command, env=variables(peer.settings), capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise PeerError(f"not done after {SECONDS} s") from None
    if found.returncode != 0:
        raise PeerError(f"exit status {found.returncode}: {found.stderr.strip().splitlines()[-1]}")
    return parse_count(found.stderr)


def row(environment: Environment, peer: Peer, model: str) -> str:
    """Returns a line of the table."""
    try:
        python, folder = prepared(environment, peer, model)
        counts = [
            count(python, peer, folder, model, prompt, tokens)
            for prompt, tokens in ((FEW_PROMPT, FEW_TOKENS), (MORE_PROMPT, FEW_TOKENS), (FEW_PROMPT, MORE_TOKENS))
        ]
    except PeerError as error:
        return f"| {model} | {peer.name} | failed: {error} | | | |"
    prefill = counts[1].of_further(counts[0], 2 * (MORE_PROMPT - FEW_PROMPT))  # the warm-up's prompt is as long
    decode = counts[2].of_further(counts[0], MORE_TOKENS - FEW_TOKENS)
    cells = [f"{value / 1e6:.1f}" for each in (prefill, decode) for value in (each.instructions, each.bytes)]
    return f"| {model} | {peer.name} | {' | '.join(cells)} |"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--models", type=names_of(SHAPES), default="qwen3-0.6b", help="comma-separated shapes")
    peers = "mote,llama.cpp,onnxruntime-genai,openvino-genai"
    parser.add_argument("--peers", type=names_of(all_peers()), default=peers, help="comma-separated runtimes")
    parser.add_argument("--work", type=Path, default=Path("build/compare"), help="folder of compare.py")
    options = parser.parse_args(arguments)
    environment = Environment(options.work)
    print("| model | runtime | prefill: 10^6 instructions a token | MB | decode: 10^6 instructions a token | MB |")
    print("|---|---|---|---|---|---|")
    for model in options.models:
        for name in options.peers:
            say(f"{model} {name}")
            print(row(environment, with_avx2(all_peers()[name]), model), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
