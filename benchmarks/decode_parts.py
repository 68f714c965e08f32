"""What the instructions of a decode step take when nothing disturbs them.

    python benchmarks/decode_parts.py MODEL.mote

Other programs take a CPU for milliseconds, and an instruction takes less than one: of many tokens some have it without
them. The table sums, over the instructions of each op, a low percentile of their times. The output head alone takes
longer than such a window; it is counted at the speed of the model's other products, and its own time is shown too.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parents[1])

PRODUCTS = ("mote.linear", "mote.gated_linear")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("model", type=Path, help="a .mote file")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--depth", type=int, default=256, help="tokens of the prompt")
    parser.add_argument("--tokens", type=int, default=150, help="decoded")
    parser.add_argument("--percentile", type=float, default=3.0, help="of an instruction's times")
    return parser.parse_args(arguments)


def measured(session, tokens: int) -> list[tuple[str, int, list[float]]]:
    """Returns op, bytes and microseconds, one for each token, of every instruction of a decode step."""
    times, last = defaultdict(list), {}
    for index in range(tokens):
        session.start_profile()
        session.decode(7 + index % 900)
        for event in session.stop_profile()["traceEvents"]:
            if event.get("cat") == "op":
                place = event["args"]["instruction"]
                times[place].append(event["dur"])
                last[place] = event["name"], event["args"]["bytes"]
    return [(*last[place], found) for place, found in times.items()]


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[int(share / 100 * (len(times) - 1))]


def table(instructions: list[tuple[str, int, list[float]]], share: float) -> str:
    parts = [(name, size, percentile(times, share)) for name, size, times in instructions]
    head = max((part for part in parts if part[0] == PRODUCTS[0]), key=lambda part: part[1])
    others = [part for part in parts if part[0] in PRODUCTS and part is not head]
    speed = sum(part[1] for part in others) / sum(part[2] for part in others)  # bytes a microsecond
    sums: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0.0])
    for part in parts:
        name, time = ("the output head", head[1] / speed) if part is head else (part[0], part[2])
        sums[name] = [sums[name][0] + 1, sums[name][1] + part[1], sums[name][2] + time]
    lines = ["| op | instructions | MB | ms | GB/s |", "|---|---|---|---|---|"]
    for name, (count, size, time) in sorted(sums.items(), key=lambda item: -item[1][2]):
        lines.append(f"| {name} | {count} | {size / 1e6:.1f} | {time / 1e3:.3f} | {size / max(time, 1e-3) / 1e3:.1f} |")
    total = sum(time for _, _, time in sums.values())
    return "\n".join([*lines, f"\nAll: {total / 1e3:.2f} ms. The head itself: {head[2] / 1e3:.2f} ms."])


def main(arguments: list[str] | None = None) -> None:
    from llm_runner import Model

    options = parse(arguments)
    with (
        Model.load(options.model) as model,
        model.session(threads=options.threads, context_length=options.depth + options.tokens) as session,
    ):
        session.prefill([7 + 11 * i % 900 for i in range(options.depth)])
        print(table(measured(session, options.tokens), options.percentile))


if __name__ == "__main__":
    main()
