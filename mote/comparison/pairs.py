"""Which value of one method is which of another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from mote.comparison.methods import DELEGATE, Instruction, Method


@dataclass(frozen=True)
class Pairs:
    """values: of the first method -> of the second; unmatched: instructions that make nothing of that, no views"""

    values: dict[int, int]
    unmatched_first: tuple[Instruction, ...]
    unmatched_second: tuple[Instruction, ...]


def pair_values(first: Method, second: Method) -> Pairs:
    """Matches values of methods that may be of other recipes, or parts of which a backend runs.

    Instructions of one op, module and shape are matched in their order, if both methods have as many; else those that
    read the same values. What matched instructions read in the same place is then the same value, whoever made it, and
    so are views of the same value; thus what leaves a part of a backend finds its counterpart. A value that only parts
    of backends read is the one of its shape that is still needed behind the next matched instruction. Of the rest, the
    last value of a module is matched with the last of the same module where the shapes agree.
    """
    found = _Matcher(first, second)
    for mine, theirs in zip(first.outputs, second.outputs, strict=False):
        found.add(mine, theirs)
    found.match_instructions(only_equal_counts=True)
    found.match_instructions(only_equal_counts=False)
    found.match_crossing()
    found.match_modules()
    return Pairs(
        found.values,
        tuple(each for each in first.computed() if not any(value in found.values for value in each.outputs)),
        tuple(each for each in second.computed() if not any(value in found.taken for value in each.outputs)),
    )


class _Side:
    """A method with who reads its values."""

    def __init__(self, method: Method):
        self.method = method
        self.readers: dict[int, list[Instruction]] = defaultdict(list)
        for each in method.instructions:
            for value in each.inputs:
                self.readers[value].append(each)

    def shape(self, value: int) -> tuple[str, ...] | None:
        """None: an input of the method, or a weight."""
        maker = self.method.producers.get(value)
        return None if maker is None else maker.shapes[maker.outputs.index(value)]

    def views(self, value: int) -> dict[Hashable, Instruction]:
        """The views of a value, each kind once."""
        found: dict[Hashable, Instruction] = {}
        for each in self.readers[value]:
            if each.is_view:
                found.setdefault((each.op, each.shapes, each.attributes), each)
        return found

    def last_use(self, value: int) -> int:
        """The last instruction that reads a value or a view of it; -1: none."""
        uses = [self.last_use(each.outputs[0]) if each.is_view else each.index for each in self.readers[value]]
        return max(uses, default=-1)


class _Matcher:
    def __init__(self, first: Method, second: Method):
        self.first = _Side(first)
        self.second = _Side(second)
        self.values: dict[int, int] = {}
        self.taken: set[int] = set()
        self.instructions: dict[int, Instruction] = {}  # index in the second method -> instruction of the first

    def add(self, mine: int, theirs: int) -> None:
        """Matches two values, then what they are views of, and their views."""
        if mine in self.values or theirs in self.taken or self.first.shape(mine) is None:
            return
        if self.first.shape(mine) != self.second.shape(theirs):
            return
        self.values[mine] = theirs
        self.taken.add(theirs)
        makers = self.first.method.producers[mine], self.second.method.producers[theirs]
        if all(each.is_view for each in makers) and makers[0].attributes == makers[1].attributes:
            self.add(makers[0].inputs[0], makers[1].inputs[0])
        others = self.second.views(theirs)
        for kind, view in self.first.views(mine).items():
            if kind in others:
                self.add(view.outputs[0], others[kind].outputs[0])

    def match_instructions(self, only_equal_counts: bool) -> None:
        mine, theirs = (_by_key(side.method.computed()) for side in (self.first, self.second))
        for key, found in mine.items():
            others = [each for each in theirs.get(key, ()) if each.index not in self.instructions]
            done = {each.index for each in self.instructions.values()}
            found = [each for each in found if each.index not in done]
            if only_equal_counts and len(found) == len(others):
                for pair in zip(found, others, strict=True):
                    self._match(*pair)
            elif not only_equal_counts:
                for each in found:
                    self._match_by_inputs(each, others)

    def _match_by_inputs(self, each: Instruction, others: list[Instruction]) -> None:
        for other in others:
            pairs = list(zip(each.inputs, other.inputs, strict=False))
            read = [(a, b) for a, b in pairs if a in self.first.method.producers]
            if other.index not in self.instructions and read and all(self.values.get(a) == b for a, b in read):
                self._match(each, other)
                return

    def _match(self, mine: Instruction, theirs: Instruction) -> None:
        self.instructions[theirs.index] = mine
        for pair in zip(mine.outputs, theirs.outputs, strict=True):
            self.add(*pair)
        weights = {*mine.weight_inputs, *theirs.weight_inputs}
        for place, (a, b) in enumerate(zip(mine.inputs, theirs.inputs, strict=False)):
            if place not in weights and a >= 0 and b >= 0:
                self.add(a, b)

    def match_crossing(self) -> None:
        for each in self.second.method.instructions:
            behind = next((index for index in sorted(self.instructions) if index > each.index), None)
            if each.op != DELEGATE or behind is None:
                continue
            limit = self.instructions[behind].index
            for value in each.outputs:
                if value in self.taken or self.second.last_use(value) <= behind:
                    continue
                candidates = [
                    other
                    for maker in self.first.method.computed()
                    for other in maker.outputs
                    if other not in self.values and maker.index < limit < self.first.last_use(other)
                    if self.first.shape(other) == self.second.shape(value)
                ]
                if len(candidates) == 1:
                    self.add(candidates[0], value)

    def match_modules(self) -> None:
        left = _last_of_modules(self.first.method, self.values)
        right = _last_of_modules(self.second.method, self.taken)
        for module in left.keys() & right.keys():
            self.add(left[module], right[module])


def _by_key(instructions: Iterable[Instruction]) -> dict[tuple, list[Instruction]]:
    found = defaultdict(list)
    for each in instructions:
        if each.op != DELEGATE:
            found[each.key].append(each)
    return found


def _last_of_modules(method: Method, matched: dict[int, int] | set[int]) -> dict[str, int]:
    return {
        each.origin: each.outputs[-1]
        for each in method.computed()
        if each.op != DELEGATE and each.outputs and not any(value in matched for value in each.outputs)
    }
