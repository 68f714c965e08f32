"""Private memory of a process that runs a file on a GPU, stage by stage.

    python benchmarks/gpu_memory.py MODEL.mote [--backend vulkan] [--prompt-tokens 16]

With a file of a few weights and the same ops beside it, what the driver takes is told from what the model does: both
make much the same pipelines. Buffers of the session, its arena and its keys and values, are a GPU's own memory where it
has some; where the CPU imitates one, or shares its memory, they are among the private as far as they were written.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path


def private_mb() -> float:
    """Returns the anonymous memory of this process that is there, in MB (10^6 bytes)."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("Anonymous:"))


class Stages:
    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._private = 0.0
        print("| stage | s | private MB | more | the session's buffers since it was opened |\n|---|---|---|---|---|")

    def end(self, name: str, buffers: int = 0) -> None:
        now, private = time.perf_counter(), private_mb()
        cells = (name, f"{now - self._started:.2f}", f"{private:.1f}", f"{private - self._private:.1f}",
                 f"{buffers / 1e6:.1f}")  # fmt: skip
        print(f"| {' | '.join(cells)} |", flush=True)
        self._started, self._private = now, private


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--backend", default="vulkan")
    parser.add_argument("--prompt-tokens", type=int, default=16)
    options = parser.parse_args()
    stages = Stages()
    stages.end("Python")
    from llm_runner import Model

    stages.end("the package")
    model = Model.load(options.file, backend=options.backend)
    stages.end("load")
    session = model.session(context_length=options.prompt_tokens + 16)
    opened = session.info["arena_bytes"]
    ids = [1 + index % 200 for index in range(options.prompt_tokens)]
    for name, tokens in (("the first token", 1), ("the same again", 1), ("8 tokens", 8)):
        session.reset()
        session.generate(ids, max_new_tokens=tokens, do_sample=False, ignore_eos=True).text()
        stages.end(name, session.info["arena_bytes"] - opened)


if __name__ == "__main__":
    main()
