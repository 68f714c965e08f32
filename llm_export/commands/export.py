"""`mote export`."""

from __future__ import annotations

import sys
from collections import Counter

import click


def run(
    checkpoint, output, recipe, group_size, embedding_bits, overrides, backends, check, tokenizer, revision, subfolder,
    local_files_only, trust_remote_code, verbose, quiet, debug,
):  # fmt: skip
    if not quiet and sys.stderr.isatty():
        click.echo("starting PyTorch ...\r", nl=False, err=True)
    from llm_export.api import export

    report = export(
        checkpoint, output, recipe=recipe, group_size=group_size, embedding_bits=embedding_bits, overrides=overrides,
        backends=backends, check=check, tokenizer=tokenizer, revision=revision, show_progress=False if quiet else None,
        subfolder=subfolder, local_files_only=local_files_only, trust_remote_code=trust_remote_code,
    )  # fmt: skip
    for note in report.notes:
        click.secho(f"note: {note}", fg="yellow", err=True)
    if verbose:
        click.echo(refusal_table(report))
    if not quiet:
        click.echo(summary(report))


def refusal_table(report) -> str:
    """Returns what backends do not run, the same op and reason in one line."""
    counts = Counter((r.lowering, r.backend, r.method, r.op, r.reason) for r in report.refusals)
    rows = [("lowering", "backend", "method", "count", "op", "reason")]
    rows += [(lowering, backend, method, str(n), op, why) for (lowering, backend, method, op, why), n in counts.items()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines if len(rows) > 1 else ["every instruction runs where it was asked for"])


def summary(report) -> str:
    """Returns the lines that end an export."""
    lines = [f"{report.path}: {human_bytes(report.file_bytes)} in {report.seconds:.1f} s"]
    if report.peak_private_bytes:
        lines[0] += f", at most {human_bytes(report.peak_private_bytes)} of private memory"
    for (lowering, method), (delegated, total) in report.num_delegated.items():
        if "+" in lowering or lowering != "cpu":
            lines.append(f"{lowering}: {delegated} of {total} instructions of {method}")
    check = report.check
    if check is None:
        lines.append("not checked against PyTorch (--check off)")
    else:
        lines.append(
            f"agrees with PyTorch ({check.mode}): relative error {check.median_relative_error:.1e} in the median, "
            f"{check.max_relative_error:.1e} at most ({check.tolerance:.1e} is accepted); same most likely token at "
            f"{check.top1_agreement:.0%} of {check.num_positions} positions"
        )
    return "\n".join(lines)


def human_bytes(count: int) -> str:
    """Returns a size in decimal units: 4.7 MB."""
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"
