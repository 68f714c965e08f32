"""An instruction for each reason for which XNNPACK does not take one, for each op that declares the reason."""

from __future__ import annotations

from dataclasses import replace

import torch

from llm_export.program.instructions import Dim
from tests.backends.parts import T, dims, linear_attributes, numbers, quantised, random
from tests.backends.xnnpack.part import Part

SHAPE = (1, T, 8)


def _slice(output: tuple, start: Dim | int, end: Dim | int, step: int = 1, dim: int = 2) -> Part:
    attributes = {"dim": dims(dim), "start": dims(start), "end": dims(end), "step": dims(step)}
    return Part("aten.slice", [SHAPE], output, attributes)


def _linear(weight, kind: str = "float", output: tuple = (1, T, 4), x: tuple = SHAPE) -> Part:
    return Part("mote.linear", [x, weight], output, linear_attributes(kind))


def _gated(weight, kind: str = "float", output: tuple = (1, T, 2), x: tuple = SHAPE, function: str = "silu") -> Part:
    attributes = {**linear_attributes(kind), "function": function}
    return Part("mote.gated_linear", [x, weight, None, None], output, attributes)


def _given_out_twice() -> Part:
    part = Part("aten.abs", [SHAPE], SHAPE)
    part.subgraph.method.outputs *= 2
    return part


def _tied(part: Part) -> Part:
    part.subgraph = replace(part.subgraph, embedded={0})
    return part


TIED = "the embedding's weight: one copy serves both"
GROUPED = "inputs that are rounded in groups, or weights with float16 scales"
UNCOMPUTED = "a shape that is not computed so"
AXIS = "not over the last dimension"
DENSE = "int8 activations with a dense weight"
EXAMPLES = [
    ("XNNPACK has no such op", Part("aten.cumsum", [SHAPE], SHAPE, {"dim": dims(1)})),
    ("dtype int64", Part("aten.add", [SHAPE, SHAPE], SHAPE, dtype=torch.int64)),
    ("rank 7: must be 1 to 6", Part("aten.abs", [(1,) * 7], (1,) * 7)),
    ("size T-1", Part("aten.abs", [(Dim(1, -1), 8)], (Dim(1, -1), 8))),
    ("dim grows with T", Part("aten.softmax", [SHAPE], SHAPE, {"dim": dims(T)})),
    ("a value is given out twice", _given_out_twice()),
    ("a weight that is computed", _linear((4, 8), output=(T, 4), x=(T, 8))),
    ("a weight where an activation is needed", Part("aten.abs", [random(8)], (8,))),
    (
        "a weight of 4 bits where a dense one is needed",
        Part("aten.add", [(T, 64), quantised(random(32, 64), 4, 32)], (T, 64)),
    ),
    ("a weight of dtype int64 and rank 1", Part("aten.add", [(T, 8), torch.arange(8)], (T, 8))),
    ("two constants", Part("aten.add", [1.5, random(8)], (8,))),
    ("a broadcast that changes the rank", Part("aten.add", [SHAPE, (T, 8)], (T, 8))),
    ("sizes 8 and 7", Part("aten.add", [SHAPE, (1, T, 7)], SHAPE)),
    ("a reshape in which several sizes grow with T", Part("aten.view", [(T, T, 2)], (T, Dim(2, 0)))),
    ("a slice at T of 8", _slice((1, T, 8), 0, T)),
    ("a slice of length T-1", _slice((1, T, 8), 0, Dim(1, -1), dim=1)),
    ("a slice with steps", _slice((1, T, 4), 0, 8, step=2)),
    (AXIS, Part("aten.softmax", [SHAPE], SHAPE, {"dim": dims(1)})),
    (AXIS, Part("aten.mean", [SHAPE], (1, 1, 8), {"dims": dims(1), "keepdim": dims(1)})),
    ("bounds that do not ascend", Part("aten.clamp", [SHAPE], SHAPE, {"min": numbers(1), "max": numbers(1)})),
    (
        "an exponent that is neither 0.5, -0.5 nor a whole number from 1 to 8, or minus one",
        Part("aten.pow", [SHAPE, 1.5], SHAPE),
    ),
    ("an expansion to a size that grows with T", Part("aten.expand", [(1, 1, 8)], SHAPE, {"size": dims(*SHAPE)})),
    (
        "an expansion to 65 times the elements: must be at most 64",
        Part("aten.expand", [(T, 1)], (T, 65), {"size": dims(T, 65)}),
    ),
    (UNCOMPUTED, Part("aten.pow", [SHAPE, 0.5], (T, 8))),
    (UNCOMPUTED, Part("mote.rms_norm", [SHAPE], (T, 8), {"eps": numbers(1e-5)})),
    (UNCOMPUTED, Part("mote.layer_norm", [SHAPE], (T, 8), {"eps": numbers(1e-5)})),
    (UNCOMPUTED, _linear(random(4, 8), output=(T, 4))),
    (UNCOMPUTED, _gated(random(4, 8), output=(T, 2))),
    (UNCOMPUTED, Part("mote.rope", [(1, 2, T, 8), (1, T, 8), (1, T, 8)], (2, T, 8), {"layout": "half"})),
    (DENSE, _linear(random(4, 8), "int8")),
    (DENSE, _gated(random(4, 8), "int8")),
    ("inputs that are rotated", _linear(quantised(random(4, 32), 4, 32), "rotated_int8", x=(1, T, 32))),
    ("inputs that are rotated", _gated(quantised(random(4, 32), 4, 32), "rotated_int8", x=(1, T, 32))),
    (GROUPED, _linear(quantised(random(4, 32), 4, 32), "grouped_int8", x=(1, T, 32))),
    (GROUPED, _gated(quantised(random(4, 32), 4, 32), "grouped_int8", x=(1, T, 32))),
    ("a weight of rank 3", _linear(random(2, 4, 8))),
    ("a weight of rank 3", _gated(random(2, 4, 8))),
    (TIED, _tied(_linear(random(4, 8)))),
    (TIED, _tied(_gated(random(4, 8)))),
    (
        "function erf",
        _gated(quantised(random(32, 64), 4, 32), "int8", output=(T, 16), x=(T, 64), function="erf"),
    ),
]
