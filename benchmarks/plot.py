"""Draws the roofline plot of a comparison: python -m benchmarks.plot REPORT.json PLOT.png (needs matplotlib).

Marks are medians, bars reach from the slowest to the fastest round. The knee of the limit is where a pass would read
its weights and compute its products in the same time.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

MARKERS = "o^svDPX*"


def points(report: dict, model: str) -> list[dict]:
    """Returns where each runtime stands.

    Returns: runtime, phase, intensity (MACs a byte of weights that a pass must read), and of all rounds the medians
    tok_s and gmac_s, least_gmac_s and most_gmac_s
    """
    setup, costs = report["setup"], report["costs"][model]
    found = []
    for row in report["rows"]:
        if row["model"] != model or row["error"]:
            continue
        for phase, passes in (("prefill", setup["prompt_tokens"]), ("decode", 1)):
            per_token = costs[f"{phase}_macs"]
            speed = {name: value * per_token / 1e9 for name, value in row[f"{phase}_tok_s"].items()}
            found.append({
                "runtime": row["runtime"], "phase": phase, "intensity": per_token * passes / costs["step_bytes"],
                "tok_s": row[f"{phase}_tok_s"]["median"],
                "gmac_s": speed["median"], "least_gmac_s": speed["min"], "most_gmac_s": speed["max"],
            })  # fmt: skip
    return found


def knee(limits: dict) -> tuple[float, float] | None:
    """Returns intensity and GMAC/s at which reading and computing take equally long; None: limits were not measured."""
    if limits["read_gb_s"] is None:
        return None
    return limits["int8_gmac_s"] / limits["read_gb_s"], limits["int8_gmac_s"]


def limit_line(limits: dict, intensities: list[float]) -> tuple[list[float], list[float]]:
    """Returns the points of the limit: from the least intensity over the knee to the largest."""
    middle = knee(limits)
    assert middle is not None
    xs = [min([*intensities, middle[0]]) / 2, middle[0], 2 * max([*intensities, middle[0]])]
    return xs, [min(x * limits["read_gb_s"], limits["int8_gmac_s"]) for x in xs]


def caption(setup: dict) -> str:
    """Returns what was measured where."""
    return (
        f"{setup['cpu']}, {setup['threads']} threads, {setup['prompt_tokens']} prompt and {setup['generate_tokens']} "
        "generated tokens\nmedians, and bars from the slowest to the fastest round"
    )


def draw(report: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    models = list(report["ratios"])
    figure, axes = pyplot.subplots(1, len(models), figsize=(6.5 * len(models), 5), squeeze=False)
    for axis, model in zip(axes[0], models, strict=True):
        _draw_model(axis, report, model)
    figure.text(0.5, 0.01, caption(report["setup"]), ha="center", fontsize=8)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path, dpi=130)


def _draw_model(axis, report: dict, model: str) -> None:
    from matplotlib.ticker import LogFormatter

    found = points(report, model)
    runtimes = list(dict.fromkeys(point["runtime"] for point in found))
    for index, runtime in enumerate(runtimes):
        mine = [point for point in found if point["runtime"] == runtime]
        xs, ys = [point["intensity"] for point in mine], [point["gmac_s"] for point in mine]
        spread = [
            [point["gmac_s"] - point["least_gmac_s"] for point in mine],
            [point["most_gmac_s"] - point["gmac_s"] for point in mine],
        ]
        axis.errorbar(
            xs, ys, yerr=spread, fmt=MARKERS[index % len(MARKERS)], markersize=7, capsize=4, label=runtime, zorder=3
        )
        for point in mine:
            place = (point["intensity"], point["gmac_s"])
            axis.annotate(f"{point['tok_s']:.0f} tok/s", place, xytext=(8, -3), textcoords="offset points", fontsize=8)
    middle = knee(report["limits"])
    if middle is not None:
        axis.plot(*limit_line(report["limits"], [point["intensity"] for point in found]), "k-", label="limit")
        axis.axvline(middle[0], color="k", linestyle=":", linewidth=1)
        axis.annotate(
            f"knee: {middle[0]:.0f} MAC a byte, {middle[1]:.0f} GMAC/s", middle, xytext=(8, -14),
            textcoords="offset points", fontsize=8,
        )  # fmt: skip
    axis.set(
        xscale="log", yscale="log", title=f"{model}: decode left, prefill right",
        xlabel="multiply-accumulates a byte of weights", ylabel="GMAC/s",
    )  # fmt: skip
    for ticks in (axis.xaxis, axis.yaxis):
        ticks.set_major_formatter("{x:g}")
        ticks.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.4)))
    axis.grid(True, which="both", alpha=0.3)
    axis.legend(fontsize=8)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
