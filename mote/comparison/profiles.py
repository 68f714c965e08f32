"""Two profiles side by side: which op takes longer in which."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llm_runner.errors import ArgumentError, FileError
from mote.comparison.tables import duration, table


@dataclass
class Test:
    """One kind of call. Of all calls together: seconds of each op, how many instructions, multiply-accumulates."""

    name: str  # "prefill of 128 tokens", "decode"
    calls: int = 0
    seconds: float = 0.0
    ops: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    macs: float = 0.0

    def add(self, op: str, seconds: float, count: int, macs: float) -> None:
        self.ops[op] = self.ops.get(op, 0.0) + seconds
        self.counts[op] = self.counts.get(op, 0) + count
        self.macs += macs


@dataclass
class Profile:
    path: str
    model: str
    tests: dict[str, Test]


def read_profile(path: str) -> Profile:
    """Reads what `mote bench --profile --json` or `mote run --profile FILE` has written.

    Errors: FileError if it cannot be read, or is neither
    """
    try:
        read = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise FileError(f"{path}: is no JSON ({error}): must be of 'mote bench --profile --json' or a trace") from error
    try:
        if isinstance(read, dict) and "traceEvents" in read:
            return Profile(path, read["otherData"]["model"], _tests_of_trace(read))
        if isinstance(read, dict) and "profile" in read:
            return Profile(path, read["file"], _tests_of_bench(read["profile"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise FileError(f"{path}: is damaged: no {error}") from error
    raise FileError(f"{path}: has no profile: must be of 'mote bench --profile --json' or of 'mote run --profile FILE'")


def _tests_of_bench(profile: Mapping[str, Any]) -> dict[str, Test]:
    tests = {}
    for found in profile["tests"]:
        behind = f" behind {found['depth']}" if found["depth"] else ""
        test = Test(f"{found['method']} of {found['tokens']} tokens{behind}", found["calls"], found["seconds"])
        for op in found["by_op"]:
            test.add(op["name"], op["seconds"], op["count"], op["macs"])
        tests[test.name] = test
    return tests


def _tests_of_trace(trace: Mapping[str, Any]) -> dict[str, Test]:
    """Calls of one method and one number of tokens are one test."""
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    calls = sorted((event for event in events if event["cat"] == "call"), key=lambda event: event["ts"])
    tests: dict[str, Test] = {}
    for call in calls:
        tokens = call["args"]["tokens"]
        name = call["name"] if call["name"] == "decode" else f"{call['name']} of {tokens} tokens"
        test = tests.setdefault(name, Test(name))
        test.calls += 1
        test.seconds += call["dur"] * 1e-6
        call["test"] = test
    place = 0
    for event in sorted((event for event in events if event["cat"] == "op"), key=lambda event: event["ts"]):
        middle = event["ts"] + event["dur"] / 2
        while place < len(calls) and calls[place]["ts"] + calls[place]["dur"] < middle:
            place += 1
        if place < len(calls) and middle >= calls[place]["ts"]:
            calls[place]["test"].add(event["name"], event["dur"] * 1e-6, 1, event["args"]["macs"])
    return tests


@dataclass(frozen=True)
class Difference:
    """Of a call, in seconds; None: the profile has no such op."""

    op: str
    first: float | None
    second: float | None
    share_first: float
    share_second: float

    @property
    def change(self) -> float:
        return (self.second or 0.0) - (self.first or 0.0)

    @property
    def ratio(self) -> float | None:
        return self.second / self.first if self.first and self.second is not None else None


def compare_tests(first: Test, second: Test) -> tuple[list[Difference], Difference, list[str]]:
    """Returns the ops, the largest difference first, the whole call, and what makes the two hard to compare."""
    rows = []
    whole = [max(test.seconds, 1e-30) for test in (first, second)]
    for op in dict.fromkeys([*first.ops, *second.ops]):
        mine, theirs = first.ops.get(op), second.ops.get(op)
        rows.append(Difference(
            op, None if mine is None else mine / first.calls, None if theirs is None else theirs / second.calls,
            (mine or 0.0) / whole[0], (theirs or 0.0) / whole[1],
        ))  # fmt: skip
    rows.sort(key=lambda row: -abs(row.change))
    total = Difference("a call", first.seconds / first.calls, second.seconds / second.calls, 1.0, 1.0)
    return rows, total, _doubts(first, second)


def _doubts(first: Test, second: Test) -> list[str]:
    notes = []
    for op in first.counts.keys() & second.counts.keys():
        mine, theirs = first.counts[op] / first.calls, second.counts[op] / second.calls
        if mine != theirs:
            notes.append(f"{op}: {mine:g} a call in the first, {theirs:g} in the second")
    macs = first.macs / first.calls, second.macs / second.calls
    if abs(macs[0] - macs[1]) > 0.01 * max(macs):
        notes.append(f"multiply-accumulates a call: {macs[0]:.3g} and {macs[1]:.3g}: other models, or other work")
    return sorted(notes)


def common_tests(first: Profile, second: Profile) -> list[tuple[Test, Test]]:
    """Errors: ArgumentError if nothing was measured in both."""
    names = [name for name in first.tests if name in second.tests]
    names = [name for name in names if first.tests[name].calls and second.tests[name].calls]
    if not names:
        mine, theirs = (", ".join(profile.tests) or "nothing" for profile in (first, second))
        raise ArgumentError(
            f"{first.path} has {mine}; {second.path} has {theirs}: nothing was measured in both, with as many tokens"
        )
    return [(first.tests[name], second.tests[name]) for name in names]


def as_json(first: Profile, second: Profile) -> dict[str, Any]:
    tests = []
    for pair in common_tests(first, second):
        rows, total, notes = compare_tests(*pair)
        tests.append({"test": pair[0].name, "ops": [_row_json(row) for row in rows], "call": _row_json(total),
                      "notes": notes})  # fmt: skip
    return {"first": first.path, "second": second.path, "models": [first.model, second.model], "tests": tests}


def _row_json(row: Difference) -> dict[str, Any]:
    return {
        "op": row.op, "first_seconds": row.first, "second_seconds": row.second, "ratio": row.ratio,
        "first_share": row.share_first, "second_share": row.share_second, "change_seconds": row.change,
    }  # fmt: skip


def as_text(first: Profile, second: Profile) -> str:
    parts = [f"first   {first.path} ({first.model})\nsecond  {second.path} ({second.model})"]
    for pair in common_tests(first, second):
        rows, total, notes = compare_tests(*pair)
        cells = [_cells(row) for row in (*rows, total)]
        heading = ["op", "first", "second", "ratio", "share", "share", "difference"]
        lines = [f"{pair[0].name}: a call", table(heading, cells), *(f"note: {note}" for note in notes)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _cells(row: Difference) -> list[str]:
    times = ["-" if value is None else duration(value) for value in (row.first, row.second)]
    sign = "+" if row.change >= 0 else "-"
    return [
        row.op, *times, "-" if row.ratio is None else f"{row.ratio:.2f}",
        f"{row.share_first:.1%}", f"{row.share_second:.1%}", sign + duration(abs(row.change)),
    ]  # fmt: skip
