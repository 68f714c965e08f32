"""Which values of a method are inputs and outputs of the checkpoint's modules."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mote.comparison.methods import DELEGATE, Instruction, Method


@dataclass(frozen=True)
class Place:
    """name: "output model.norm"   begin, end: the columns of the value that are the module's; all: None"""

    name: str
    begin: int | None = None
    end: int | None = None

    def take(self, value: np.ndarray) -> np.ndarray:
        return value[..., self.begin : self.end]


def values_of_modules(method: Method, shapes: Mapping[str, tuple[int, ...]]) -> dict[int, list[Place]]:
    """Returns for each value which modules take or give it.

    An instruction with weights reads the input of the module that owns the first of them that is applied: the norm in
    front of a linear, else the linear. The last value of a module's path is its output, unless later instructions
    still read weights of the module. Linears that became one give the outputs of their modules side by side.
    A value that is the output of one module and the input of another is the former.
    shapes: of the modules' values, by "input MODULE" and "output MODULE", [1, T, ...]
    """
    found: dict[int, list[Place]] = {}
    taken: set[str] = set()
    for value, place in (*_merged(method, shapes), *_outputs(method, shapes)):
        if place.name not in taken:
            taken.add(place.name)
            found.setdefault(value, []).append(place)
    for value, place in _inputs(method, shapes):
        found.setdefault(value, [place])
    return found


def _module(weight: str) -> str:
    return weight.rpartition(".")[0]


def _width(shapes: Mapping[str, tuple[int, ...]], name: str) -> int | None:
    """Elements a token; None: there is no such value."""
    return math.prod(shapes[name][2:]) if name in shapes else None


def _row_elements(shape: tuple[str, ...]) -> int | None:
    """Elements a token of a value [1, T, ...], or of one token in any layout; None: tokens are in another dimension."""
    if any(not size.isdigit() for size in shape) and (len(shape) < 2 or shape[0] != "1" or shape[1] != "T"):
        return None
    return math.prod(int(size) for size in shape if size.isdigit())


def _merged(method: Method, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[int, Place]]:
    for each in method.computed():
        joined = [names for names in each.weights if len(names) > 1]
        if each.op == DELEGATE or not joined or len(each.outputs) != 1:
            continue
        modules = [_module(name) for name in joined[0]]
        widths = [_width(shapes, f"output {module}") for module in modules]
        if None in widths or each.origin not in modules or sum(w or 0 for w in widths) != int(each.shapes[0][-1]):
            continue
        begin = 0
        for module, width in zip(modules, widths, strict=True):
            yield each.outputs[0], Place(f"output {module}", begin, begin + (width or 0))
            begin += width or 0


def _outputs(method: Method, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[int, Place]]:
    last: dict[str, Instruction] = {}
    last_weight: dict[str, int] = {}  # module -> the last instruction that reads a weight in it
    for each in method.instructions:
        if each.op != DELEGATE:
            last[each.origin] = each
        for weight in (name for names in each.weights for name in names):
            path = _module(weight)
            if each.origin == path:  # a tied weight is read for others too
                last_weight[path] = each.index
            while path := _module(path):
                last_weight[path] = each.index
    for module, each in last.items():
        name = f"output {module}"
        done = last_weight.get(module, -1) <= each.index and each.op != "aten.slice"
        if done and name in shapes and each.outputs and _row_elements(each.shapes[0]) == _width(shapes, name):
            yield _root(method, each.outputs[0]), Place(name)


def _root(method: Method, value: int) -> int:
    """The value that a view, or several, only give another shape; another value is its own."""
    each = method.producers[value]
    while each.op == "aten.view" and each.inputs[0] in method.producers:
        source = method.producers[each.inputs[0]]
        if source.is_view and source.op != "aten.view":
            break
        value, each = each.inputs[0], source
    return value


def _inputs(method: Method, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[int, Place]]:
    for each in method.instructions:
        if each.op == DELEGATE or not each.weights or not each.inputs or each.inputs[0] not in method.producers:
            continue
        value = _root(method, each.inputs[0])
        maker = method.producers[value]
        width = _row_elements(maker.shapes[maker.outputs.index(value)])
        modules = [_module(names[0]) for names in each.weights]
        for module in reversed(modules):  # a norm stands behind the linear that it is part of
            if width is not None and _width(shapes, f"input {module}") == width:
                yield value, Place(f"input {module}")
                break
