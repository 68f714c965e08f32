"""Draws the roofline plot of a comparison: python -m benchmarks.plot REPORT.json PLOT.png (needs matplotlib)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.shapes import SHAPES, decode_bytes, prefill_macs

MARKERS = "o^svDPX*"


def points(report: dict, model: str) -> list[dict]:
    """Returns where each runtime stands.

    Returns: runtime, phase, intensity (MACs a byte of weights that a pass must read) and gmac_s (reached)
    """
    setup, config = report["setup"], SHAPES[model]
    macs = prefill_macs(config, setup["prompt_tokens"])
    weights = decode_bytes(config, 0, 0)
    decode_macs = prefill_macs(config, 1)
    found = []
    for row in report["rows"]:
        if row["model"] != model or row["error"]:
            continue
        for phase, per_token, passes in (("prefill", macs, setup["prompt_tokens"]), ("decode", decode_macs, 1)):
            speed = row[f"{phase}_tok_s"]["median"]
            found.append({
                "runtime": row["runtime"], "phase": phase,
                "intensity": per_token * passes / weights, "gmac_s": speed * per_token / 1e9,
            })  # fmt: skip
    return found


def draw(report: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    models = list(report["ratios"])
    figure, axes = pyplot.subplots(1, len(models), figsize=(6.5 * len(models), 5), squeeze=False)
    for axis, model in zip(axes[0], models, strict=True):
        _draw_model(axis, report, model)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def _draw_model(axis, report: dict, model: str) -> None:
    found = points(report, model)
    runtimes = list(dict.fromkeys(point["runtime"] for point in found))
    for index, runtime in enumerate(runtimes):
        mine = [point for point in found if point["runtime"] == runtime]
        xs, ys = [point["intensity"] for point in mine], [point["gmac_s"] for point in mine]
        axis.scatter(xs, ys, marker=MARKERS[index % len(MARKERS)], s=60, label=runtime, zorder=3)
    limits = report["limits"]
    if limits["read_gb_s"] is not None:
        xs = [0.5 * 2**step for step in range(12)]
        axis.plot(xs, [min(x * limits["read_gb_s"], limits["int8_gmac_s"]) for x in xs], "k-", label="limit")
    axis.set(
        xscale="log", yscale="log", title=f"{model}: decode left, prefill right",
        xlabel="multiply-accumulates a byte of weights", ylabel="GMAC/s",
    )  # fmt: skip
    axis.grid(True, which="both", alpha=0.3)
    axis.legend(fontsize=8)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
