"""`mote export`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

import click

from llm_export.program.instructions import CPU
from llm_export.progress import Progress
from mote.endings import end_on_signals
from mote.units import human_bytes


def run(
    checkpoint, output, recipe, requantize, group_size, embedding_bits, inputs, overrides, calibration, target_bits,
    backends, check, tokenizer, no_tokenizer, embed, assistant, weights_file, revision, subfolder, local_files_only,
    trust_remote_code, verbose, quiet, as_json, debug,
):  # fmt: skip
    end_on_signals()
    show_progress = False if quiet else sys.stderr.isatty()
    with Progress(show_progress).stage("start"):  # PyTorch
        from llm_export.api import export
    from llm_export.errors import ArgumentError
    from llm_export.quantize.recipes import parse_group_size

    if tokenizer and no_tokenizer:
        raise ArgumentError(f"--tokenizer {tokenizer} and --no-tokenizer: must be one of them")
    report = export(
        checkpoint, output, recipe=recipe, requantize=requantize, group_size=parse_group_size(group_size),
        embedding_bits=embedding_bits, inputs=inputs, overrides=overrides, calibration=calibration,
        target_bits=target_bits, backends=backends, check=check, tokenizer=tokenizer or not no_tokenizer, embed=embed,
        assistant=assistant, weights_file=weights_file, revision=revision, show_progress=show_progress,
        subfolder=subfolder, local_files_only=local_files_only,
        trust_remote_code=trust_remote_code,
    )  # fmt: skip
    if as_json:
        click.echo(json.dumps(report_as_json(report), indent=2))
        return
    for note in report.notes:
        click.secho(f"note: {note}", fg="yellow", err=True)
    if verbose:
        click.echo(refusal_table(report))
    if not quiet:
        click.echo(summary(report))


CHECK_FIELDS = (
    "mode", "median_relative_error", "max_relative_error", "tolerance", "top1_agreement", "num_positions",
    "embedding_error",
)  # fmt: skip


def report_as_json(report) -> dict:
    """Returns the report with the names that `mote show --json` has, and what each backend runs and refuses."""
    check = report.check
    return {
        "path": str(report.path),
        "bytes": report.file_bytes,
        "weights_file": str(report.weights_file) if report.weights_file is not None else None,
        "asset": str(report.asset) if report.asset is not None else None,
        "seconds": report.seconds,
        "stage_seconds": report.stage_seconds,
        "peak_private_bytes": report.peak_private_bytes,
        "check": {name: getattr(check, name) for name in CHECK_FIELDS} if check is not None else None,
        "notes": report.notes,
        "delegated": [
            {"target": target, "method": method, "num_delegated": delegated, "num_instructions": total}
            for (target, method), (delegated, total) in report.num_delegated.items()
        ],
        "refusals": [asdict(refusal) for refusal in report.refusals],
    }


def refusal_table(report) -> str:
    """Returns what backends do not run, the most frequent first: how often in each method, and why."""
    if not report.refusals:
        return "every instruction runs where it was asked for"
    methods = list(dict.fromkeys(method for _, method in report.num_delegated))
    counts: dict[tuple[str, ...], Counter[str]] = {}
    for r in report.refusals:
        counts.setdefault((r.target, r.backend, r.op, r.reason), Counter())[r.method] += 1
    lines = []
    for target, backend in dict.fromkeys(key[:2] for key in counts):
        place = backend if target == backend else f"{backend} in {target}"
        rows = [(count, *key[2:]) for key, count in counts.items() if key[:2] == (target, backend)]
        rows.sort(key=lambda row: -row[0].total())
        lines += [f"not on {place}:", *_aligned(["op", *methods, "because"], rows, methods)]
    return "\n".join(lines)


def _aligned(
    heading: Sequence[str], rows: Sequence[tuple[Counter[str], str, str]], methods: Sequence[str]
) -> list[str]:
    cells = [heading, *([op, *(str(count[m] or "-") for m in methods), why] for count, op, why in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for op, *numbers, why in cells:
        numbers = [number.rjust(width) for number, width in zip(numbers, widths[1:-1], strict=True)]
        lines.append("  ".join(["  " + op.ljust(widths[0]), *numbers, why]))
    return lines


def summary(report) -> str:
    """Returns the lines that end an export."""
    sizes = human_bytes(report.file_bytes)
    if report.weights_file is not None:
        sizes += f" beside {report.weights_file.name} with {human_bytes(report.weights_file.stat().st_size)}"
    lines = [f"{report.path}: {sizes} in {report.seconds:.1f} s"]
    if report.asset is not None:
        held = sum(part.stat().st_size for part in report.asset.rglob("*") if part.is_file())
        lines[0] += f" beside {report.asset.name} with {human_bytes(held)}, which has to stay there"
    if report.peak_private_bytes:
        lines[0] += f", at most {human_bytes(report.peak_private_bytes)} of private memory"
    for (target, method), (delegated, total) in report.num_delegated.items():
        if target != CPU:
            lines.append(f"{target}: {delegated} of {total} instructions of {method}")
    check = report.check
    if check is None:
        lines.append("not checked against PyTorch (--check off)")
    elif not check.sequences:
        lines.append(
            f"embeddings agree with PyTorch's ({check.mode}): relative error {check.max_relative_error:.1e} at most "
            f"({check.tolerance:.1e} is accepted)"
        )
    else:
        rerouted = sum(check.rerouted)
        lines.append(
            f"agrees with PyTorch ({check.mode}): relative error {check.median_relative_error:.1e} in the median, "
            f"{check.max_relative_error:.1e} at most ({check.tolerance:.1e} is accepted); same most likely token at "
            f"{check.top1_agreement:.0%} of {check.num_positions} positions"
            + (f"; at {rerouted} of them a router took another expert" if rerouted else "")
        )
    return "\n".join(lines)
