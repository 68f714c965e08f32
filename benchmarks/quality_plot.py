"""Draws quality against size: python -m benchmarks.quality_plot REPORT.json PLOT.svg (needs matplotlib)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

STYLES = {"Mote": ("o", "#1f6feb"), "Mote, calibrated": ("s", "#0a7d3c"), "llama.cpp": ("^", "#c2410c")}


def series(report: dict) -> dict[str, list[dict]]:
    """Returns the rows of each mark, the smallest file first."""
    found: dict[str, list[dict]] = {}
    for row in sorted(report["rows"], key=lambda row: row["file_bytes"]):
        name = f"{row['runtime']}, calibrated" if "--calibration" in row["recipe"] else row["runtime"]
        found.setdefault(name, []).append(row)
    return found


def draw(report: dict, path: Path) -> None:
    """Writes an SVG whose bytes depend on the report only; nothing where there is no matplotlib or no row."""
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed: no plot", file=sys.stderr)
        return
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "mote"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 4.4))
    for name, rows in series(report).items():
        marker, color = STYLES.get(name, ("D", "#666666"))
        sizes, losses = ([row[key] for row in rows] for key in ("file_bytes", "kl_divergence"))
        axes.plot([size / 1e6 for size in sizes], losses, marker, color=color, label=name)
        for row in rows:
            label = row["recipe"].replace(" --calibration", "").replace("--", "")
            place = (row["file_bytes"] / 1e6, row["kl_divergence"])
            axes.annotate(label, place, xytext=(5, 4), textcoords="offset points", fontsize=7)
    axes.set(yscale="log", xlabel="file, MB", ylabel="KL divergence, nats a token", title=report["model"])
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
