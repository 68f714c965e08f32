"""`mote adapter`."""

from __future__ import annotations

import json
import sys

import click

from llm_export.progress import Progress
from mote.endings import end_on_signals
from mote.units import human_bytes


def run(folder, base, output, checkpoint, quiet, as_json, debug) -> None:
    end_on_signals()
    with Progress(False if quiet else sys.stderr.isatty()).stage("start"):  # PyTorch
        from llm_export.adapters import make_adapter
    report = make_adapter(folder, base, output, checkpoint)
    if as_json:
        click.echo(json.dumps(report_as_json(report), indent=2))
    elif not quiet:
        click.echo(summary(report))


def report_as_json(report) -> dict:
    return {
        "path": str(report.path),
        "bytes": report.file_bytes,
        "method": report.method,
        "num_modules": report.num_modules,
        "ranks": list(report.ranks),
        "base": str(report.base),
        "model_id": report.model_id,
    }


def summary(report) -> str:
    """Returns the line that ends the verb."""
    ranks = ", ".join(map(str, report.ranks))
    return (
        f"{report.path}: {human_bytes(report.file_bytes)}, {report.method} of rank {ranks} on {report.num_modules} "
        f"linears of {report.model_id} ({report.base})"
    )
