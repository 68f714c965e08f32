"""What the attention benchmarks of peers share: their command line, and how a case is timed.

Nothing here needs more than the standard library, so that it runs in any environment.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

COLD_BYTES = 384 << 20  # what a step reads between two visits of a layer: more than caches keep
REPEATS = 5
CASE_SECONDS = 6.0  # after which a case is not repeated again


@dataclass(frozen=True)
class Case:
    heads: int
    kv_heads: int
    head_dim: int
    type: str
    context: int
    tokens: int
    threads: int

    def layers(self, element_bytes: float) -> int:
        """Returns how many layers' caches are visited in turn; a few for many tokens, which cost more than reading."""
        size = 2 * self.context * self.kv_heads * self.head_dim * element_bytes
        return max(1, min(int(COLD_BYTES / size), 4 if self.tokens > 16 else 1 << 20))


def seconds_a_run(run: Callable[[], None]) -> float:
    """Returns the median time of a call after one to warm up."""
    run()
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < REPEATS and (not times or time.perf_counter() - began < CASE_SECONDS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times)


def main(time_case: Callable[[Case], float]) -> None:
    """Prints one JSON object for each case; time_case returns seconds a layer."""
    parser = argparse.ArgumentParser()
    for name in ("shape", "sizes", "types", "contexts", "tokens", "threads"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    sizes, contexts, tokens = (
        [int(text) for text in getattr(options, name).split(",")] for name in ("sizes", "contexts", "tokens")
    )
    for kind in options.types.split(","):
        for context in contexts:
            for count in tokens:
                case = Case(*sizes, kind, context, count, int(options.threads))
                facts = {"shape": options.shape, "type": kind, "context": context, "tokens": count}
                print(json.dumps(facts | {"us": time_case(case) * 1e6}), flush=True)
