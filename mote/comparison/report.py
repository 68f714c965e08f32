"""A comparison of values as text and as JSON."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from mote.comparison.differences import Comparison, Row
from mote.comparison.tables import broken, decibels, error_text, table

NUM_SHOWN = 10


def as_json(comparison: Comparison, tolerance: float) -> dict[str, Any]:
    """Returns an object for --json; infinities are null."""
    first, largest = comparison.first_beyond(tolerance), comparison.largest_own()
    return {
        "reference": comparison.first,
        "other": comparison.second,
        "method": comparison.method,
        "tokens": comparison.tokens,
        "tolerance": tolerance,
        "logits": comparison.logits.as_json(),
        "first_difference": first.as_json() if first else None,
        "largest_own": largest.as_json() if largest and largest.own.relative > 0 else None,
        "values": [row.as_json() for row in comparison.rows],
        "by_layer": [{"layer": layer} | row.as_json() for layer, row in last_of_layers(comparison.rows)],
        "by_op": by_op(comparison.rows),
        "not_compared": {"reference": list(comparison.unmatched_first), "other": list(comparison.unmatched_second)},
        "notes": comparison.notes,
    }


def last_of_layers(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """Returns what leaves each layer."""
    return list({row.layer: row for row in rows}.items())


def by_op(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Returns an object for each op, those where most comes in first."""
    found = []
    for op in dict.fromkeys(row.instruction.op for row in rows):
        mine = [row for row in rows if row.instruction.op == op]
        worst = max(mine, key=lambda row: row.own.relative)
        found.append({
            "op": op, "values": len(mine), "median_relative": statistics.median(row.gap.relative for row in mine),
            "max_relative": max(row.gap.relative for row in mine), "max_own": worst.own.relative,
            "where": worst.instruction.origin,
        })  # fmt: skip
    return sorted(found, key=lambda each: -each["max_own"])


def as_text(comparison: Comparison, tolerance: float, everything: bool = False) -> str:
    """Returns what a person reads. everything: every value, and not only those where most comes in"""
    rows = comparison.rows
    parts = ["\n".join(_summary(comparison, tolerance))]
    parts.append(_titled("Layers: what leaves each", _layers(rows)))
    parts.append(_titled("Ops", _ops(rows)))
    shown = (
        rows if everything else sorted((row for row in rows if row.own.relative > 0), key=lambda row: -row.own.relative)
    )
    shown = shown if everything else shown[:NUM_SHOWN]
    title = "Values" if everything else f"Where most comes in ({len(shown)} of {len(rows)} values; --all: all)"
    if shown:
        parts.append(_titled(title, _values(shown)))
    parts += _not_compared(comparison)
    return "\n\n".join(parts)


def _titled(title: str, text: str) -> str:
    return f"{click.style(title, bold=True)}\n{text}"


def _line(name: str, text: str) -> list[str]:
    first, *more = broken(text, 80 - 17)
    return [f"{name:<15}{first}", *(" " * 15 + line for line in more)]


def _summary(comparison: Comparison, tolerance: float) -> list[str]:
    logits = comparison.logits
    lines = [
        *_line("reference", comparison.first),
        *_line("compared", comparison.second),
        *_line("over", f"{comparison.tokens} tokens, by {comparison.method}"),
        *_line("logits", f"KL divergence {logits.kl / max(logits.tokens, 1):.2e} nats a token, same most likely token "
               f"{logits.agreed / max(logits.tokens, 1):.1%}, largest error {error_text(logits.max_relative)}"),
    ]  # fmt: skip
    first, largest = comparison.first_beyond(tolerance), comparison.largest_own()
    if all(row.gap.relative == 0 for row in comparison.rows) and logits.max_relative == 0:
        return [*lines, *_line("values", f"all {len(comparison.rows)} are equal to the bit")]
    beyond = f"nothing is further apart than {tolerance:g}"
    lines += _line("parts at", f"{_name(first)}: {error_text(first.gap.relative)}" if first else beyond)
    if largest and largest.own.relative > 0:
        lines += _line("most comes in", f"{_name(largest)}: {error_text(largest.own.relative)}")
        for names in largest.instruction.weights:
            lines += _line("", f"weight {'+'.join(names)}")
    return lines


def _name(row: Row) -> str:
    each = row.instruction
    return f"{each.index} {each.op} {row.what or each.place}"


def _layers(rows: Sequence[Row]) -> str:
    cells = [
        [layer, error_text(row.gap.relative), decibels(row.gap.snr_db), error_text(row.gap.max_abs),
         f"{row.gap.cosine:.6f}", error_text(max(other.own.relative for other in rows if other.layer == layer))]
        for layer, row in last_of_layers(rows)
    ]  # fmt: skip
    return table(["layer", "rel. error", "SNR dB", "max abs", "cosine", "largest own"], cells)


def _ops(rows: Sequence[Row]) -> str:
    cells = [
        [each["op"], str(each["values"]), error_text(each["median_relative"]), error_text(each["max_relative"]),
         error_text(each["max_own"])]
        for each in by_op(rows)
    ]  # fmt: skip
    return table(["op", "values", "rel. error (median)", "largest", "largest own"], cells)


def _values(rows: Sequence[Row]) -> str:
    cells = [
        [_name(row), error_text(row.gap.relative), decibels(row.gap.snr_db), error_text(row.gap.max_abs),
         error_text(row.own.relative)]
        for row in rows
    ]  # fmt: skip
    return table(["instruction", "rel. error", "SNR dB", "max abs", "own error"], cells)


def _not_compared(comparison: Comparison) -> list[str]:
    lines = list(comparison.notes)
    for name, missing in (("reference", comparison.unmatched_first), ("compared", comparison.unmatched_second)):
        if not missing:
            continue
        counts = Counter(_without_numbers(each) for each in missing)
        listed = "; ".join(f"{count} {each}" if count > 1 else each for each, count in counts.items())
        lines.append(f"without a counterpart, in the {name}: {listed}")
    return ["\n".join("\n".join(broken(line, 80)) for line in lines)] if lines else []


def _without_numbers(name: str) -> str:
    return ".".join("*" if part.isdigit() else part for part in name.split("."))
