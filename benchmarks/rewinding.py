"""What going back costs a session on a model with recurrent layers.

    python benchmarks/rewinding.py MODEL.mote

A session reads a prompt and decodes more tokens one by one. Then it goes back by 1, 2, 4, ... of them and decodes one.
The table has the call that goes back, and what decoding the next token takes more than without one, as states are
brought to their place by the call that uses them: medians of interleaved rounds.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from statistics import median

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parents[1])

PROMPT_TOKENS = 256


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("model", type=Path, help="a .mote file")
    parser.add_argument("--tokens", type=int, default=256, help="decoded, and the most that the session goes back by")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    return parser.parse_args(arguments)


def milliseconds(action) -> float:
    start = time.perf_counter()
    action()
    return 1e3 * (time.perf_counter() - start)


def measured(session, ids: list[int], by: int) -> tuple[float, float, float]:
    """Returns milliseconds of going back `by` tokens from the end of `ids`, of decoding behind it, and of decoding once
    more, which has nothing to go back for. The session is at the end of `ids` again afterwards."""
    to = len(ids) - by
    back = milliseconds(lambda: session.rewind(to))
    first = milliseconds(lambda: session.decode(ids[to]))
    plain = milliseconds(lambda: session.decode(ids[(to + 1) % len(ids)]))
    session.rewind(to)
    for token in ids[to:]:
        session.decode(token)
    return back, first, plain


def distances(most: int) -> list[int]:
    found = [1]
    while found[-1] < most:
        found.append(min(2 * found[-1], most))
    return found


def main(arguments: list[str] | None = None) -> None:
    from llm_runner import Model

    options = parse(arguments)
    ids = [7 + 11 * i % 900 for i in range(PROMPT_TOKENS + options.tokens)]
    found: dict[int, list[tuple[float, float, float]]] = {by: [] for by in distances(options.tokens)}
    with (
        Model.load(options.model) as model,
        model.session(
            threads=options.threads, context_length=2 * len(ids), rewind_tokens=options.tokens, rewind_mb=1024
        ) as session,
    ):
        session.prefill(ids[:PROMPT_TOKENS])
        for token in ids[PROMPT_TOKENS:]:
            session.decode(token)
        for _ in range(options.rounds):
            for by, times in found.items():
                times.append(measured(session, ids, by))
    plain = median(each[2] for times in found.values() for each in times)
    print("| tokens back | the call, ms | next token more, ms | of a token |\n|---|---|---|---|")
    for by, times in found.items():
        back, more = median(each[0] for each in times), median(each[1] for each in times) - plain
        print(f"| {by} | {back:.3f} | {more:.2f} | {more / plain:.2f} |")


if __name__ == "__main__":
    main()
