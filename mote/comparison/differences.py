"""Compares the values of two runs, instruction by instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from llm_runner.errors import ArgumentError
from mote.comparison.gaps import Gap, LogitsGap
from mote.comparison.methods import Instruction, layer_of
from mote.comparison.modules import Place, values_of_modules
from mote.comparison.pairs import pair_values
from mote.comparison.runs import Run, common_method


@dataclass
class Row:
    """A value of the reference and what it became.

    what: "" for an output of the instruction; else which module's input or output it is
    own: the gap of the value where the instructions before it have given what they gave in the reference
    """

    instruction: Instruction
    what: str
    gap: Gap
    own: Gap

    @property
    def layer(self) -> str:
        return layer_of(self.instruction.origin)

    def as_json(self) -> dict[str, Any]:
        each = self.instruction
        return {
            "instruction": each.index,
            "op": each.op,
            "origin": each.origin,
            "what": self.what,
            "weights": ["+".join(names) for names in each.weights],
            "own_relative": self.own.as_json()["relative"],
        } | self.gap.as_json()


@dataclass
class Comparison:
    """What two runs over the same tokens have computed; rows are in the order of the instructions."""

    first: str
    second: str
    method: str
    tokens: int
    rows: list[Row]
    logits: LogitsGap
    unmatched_first: Sequence[str] = ()
    unmatched_second: Sequence[str] = ()
    notes: list[str] = field(default_factory=list)

    def first_beyond(self, tolerance: float) -> Row | None:
        """The first value whose relative error is larger."""
        return next((row for row in self.rows if row.gap.relative > tolerance), None)

    def largest_own(self) -> Row | None:
        """Where most error comes in."""
        return max(self.rows, key=lambda row: row.own.relative, default=None)


def compare_files(first: Run, second: Run, ids: Sequence[int], method: str | None = None) -> Comparison:
    """Runs both over the ids, call by call, and the second once more with the values of the first in its own's place.

    method: "verify", "decode" or None for the one that both can
    Errors: ArgumentError if they are not of one model
    """
    check_same_model(first, second)
    mine, theirs = common_method([first, second], method)
    pairs = pair_values(mine, theirs)
    gaps = {value: (Gap(), Gap()) for value in pairs.values}
    logits = LogitsGap()
    forced: dict[int, np.ndarray] = {}
    free, alone = second.calls(ids, theirs), second.calls(ids, theirs, forced)
    for left, left_logits in first.calls(ids, mine):
        right, right_logits = next(free)
        logits.add(left_logits, right_logits)
        forced.clear()
        forced.update({other: left[value] for value, other in pairs.values.items() if value in left})
        by_itself, _ = next(alone)
        for value, other in pairs.values.items():
            if value in left and other in right and left[value].size == right[other].size:
                for gap, found in zip(gaps[value], (right, by_itself), strict=True):
                    gap.add(left[value], found[other])
    rows = [
        Row(mine.maker(value), "", *gaps[value])
        for each in mine.instructions
        for value in each.outputs
        if value in gaps and gaps[value][0].elements
        if not (each.is_view and theirs.producers[pairs.values[value]].is_view)
    ]
    return Comparison(
        first.label, second.label, mine.name, len(ids), rows, logits,
        [each.name for each in pairs.unmatched_first],
        [each.name for each in pairs.unmatched_second],
        [_border_note(run) for run in (first, second) if run.delegates],
    )  # fmt: skip


def check_same_model(first: Run, second: Run) -> None:
    """Errors: ArgumentError naming what differs."""
    for name in ("vocab_size", "max_position_embeddings"):
        mine, theirs = first.about[name], second.about[name]
        if mine != theirs:
            raise ArgumentError(f"{second.label}: {name} = {theirs}, of {first.label} {mine}: not of one model")
    shapes = [
        [{key: state.get(key) for key in ("kind", "num_heads", "head_dim", "shape")} for state in run.about["states"]]
        for run in (first, second)
    ]
    if shapes[0] != shapes[1]:
        raise ArgumentError(f"{second.label}: has other layers than {first.label}: not of one model")


def _border_note(run: Run) -> str:
    names = " and ".join(run.delegates)
    return f"{run.label}: of the parts that {names} runs there are the values at their borders only"


def compare_modules(
    run: Run, ids: Sequence[int], modules: Mapping[str, np.ndarray], logits: np.ndarray, reference: str,
    method: str | None = None,
) -> Comparison:  # fmt: skip
    """Compares a file with what the modules of the checkpoint computed of the same ids.

    modules: "input MODULE" and "output MODULE" -> [1, T, ...]   logits: float32 [T, vocab_size]
    """
    (mine,) = common_method([run], method)
    wanted = values_of_modules(mine, {name: array.shape for name, array in modules.items()})
    gaps = {(value, each.name): (Gap(), Gap()) for value, found in wanted.items() for each in found}
    of_logits = LogitsGap()
    forced: dict[int, np.ndarray] = {}
    alone = run.calls(ids, mine, forced)
    done = 0
    for values, found_logits in run.calls(ids, mine):
        part = slice(done, done + len(found_logits))
        done = part.stop
        of_logits.add(logits[part], found_logits)
        expected = {name: array[:, part] for name, array in modules.items()}
        forced.clear()
        forced.update({value: _whole(values[value], found, expected) for value, found in wanted.items()})
        by_itself, _ = next(alone)
        for value, found in wanted.items():
            for each in found:
                for gap, run_values in zip(gaps[value, each.name], (values, by_itself), strict=True):
                    gap.add(expected[each.name], each.take(run_values[value]))
    rows = [
        Row(mine.maker(value), each.name, *gaps[value, each.name])
        for instruction in mine.instructions
        for value in instruction.outputs
        for each in wanted.get(value, ())
    ]
    missing = sorted(set(modules) - {name for _, name in gaps})
    notes = [_border_note(run)] if run.delegates else []
    return Comparison(
        reference, run.label, mine.name, len(ids), rows, of_logits,
        [name for name in missing if name.startswith("output ")], (), notes,
    )  # fmt: skip


def _whole(value: np.ndarray, places: Sequence[Place], expected: Mapping[str, np.ndarray]) -> np.ndarray:
    """A value with what the modules have in the place of its parts."""
    result = value.copy()
    for each in places:
        part = each.take(result)
        part[...] = expected[each.name].reshape(part.shape)
    return result
