"""An instruction for each reason for which XNNPACK does not take one; docs/backends.md is made from them."""

from __future__ import annotations

import traceback
from dataclasses import replace

import torch

from backends.xnnpack.lowering import XnnpackBackend
from llm_export.partition.backend import Unsupported
from llm_export.program.instructions import Dim
from tests.backends.xnnpack.parts import Part, T, dims, linear_attributes, numbers, quantised, random

SHAPE = (1, T, 8)


def _slice(output: tuple, start: Dim | int, end: Dim | int, step: int = 1, dim: int = 2) -> Part:
    attributes = {"dim": dims(dim), "start": dims(start), "end": dims(end), "step": dims(step)}
    return Part("aten.slice", [SHAPE], output, attributes)


def _gated(function: str) -> Part:
    weight = quantised(random(32, 64), 4, 32)
    attributes = {**linear_attributes("int8"), "function": function}
    return Part("mote.gated_linear", [(T, 64), weight, None, None], (T, 16), attributes)


def _given_out_twice() -> Part:
    part = Part("aten.abs", [SHAPE], SHAPE)
    part.subgraph.method.outputs *= 2
    return part


def _tied() -> Part:
    part = Part("mote.linear", [SHAPE, random(4, 8)], (1, T, 4), linear_attributes("float"))
    part.subgraph = replace(part.subgraph, embedded={0})
    return part


REFUSED = {
    "XNNPACK has no such op": Part("aten.cumsum", [SHAPE], SHAPE, {"dim": dims(1)}),
    "dtype int64": Part("aten.add", [SHAPE, SHAPE], SHAPE, dtype=torch.int64),
    "rank 7: must be 1 to 6": Part("aten.abs", [(1,) * 7], (1,) * 7),
    "size T-1": Part("aten.abs", [(Dim(1, -1), 8)], (Dim(1, -1), 8)),
    "dim grows with T": Part("aten.softmax", [SHAPE], SHAPE, {"dim": dims(T)}),
    "a value is given out twice": _given_out_twice(),
    "a weight that is computed": Part("mote.linear", [(T, 8), (4, 8)], (T, 4), linear_attributes("float")),
    "a weight where an activation is needed": Part("aten.abs", [random(8)], (8,)),
    "a weight of 4 bits where a dense one is needed": Part(
        "aten.add", [(T, 64), quantised(random(32, 64), 4, 32)], (T, 64)
    ),
    "a weight of dtype int64 and rank 1": Part("aten.add", [(T, 8), torch.arange(8)], (T, 8)),
    "two constants": Part("aten.add", [1.5, random(8)], (8,)),
    "a broadcast that changes the rank": Part("aten.add", [SHAPE, (T, 8)], (T, 8)),
    "sizes 8 and 7": Part("aten.add", [SHAPE, (1, T, 7)], SHAPE),
    "a reshape in which several sizes grow with T": Part("aten.view", [(T, T, 2)], (T, Dim(2, 0))),
    "a slice at T of 8": _slice((1, T, 8), 0, T),
    "a slice of length T-1": _slice((1, T, 8), 0, Dim(1, -1), dim=1),
    "a slice with steps": _slice((1, T, 4), 0, 8, step=2),
    "not over the last dimension": Part("aten.softmax", [SHAPE], SHAPE, {"dim": dims(1)}),
    "bounds that do not ascend": Part("aten.clamp", [SHAPE], SHAPE, {"min": numbers(1), "max": numbers(1)}),
    "an exponent that is neither 0.5, -0.5 nor a whole number from 1 to 8, or minus one": Part(
        "aten.pow", [SHAPE, 1.5], SHAPE
    ),
    "an expansion to a size that grows with T": Part("aten.expand", [(1, 1, 8)], SHAPE, {"size": dims(*SHAPE)}),
    "an expansion to 65 times the elements: must be at most 64": Part(
        "aten.expand", [(T, 1)], (T, 65), {"size": dims(T, 65)}
    ),
    "a shape that is not computed so": Part("mote.rms_norm", [SHAPE], (T, 8), {"eps": numbers(1e-5)}),
    "int8 activations with a dense weight": Part(
        "mote.linear", [SHAPE, random(4, 8)], (1, T, 4), linear_attributes("int8")
    ),
    "a weight of rank 3": Part("mote.linear", [SHAPE, random(2, 4, 8)], (1, T, 4), linear_attributes("float")),
    "the embedding's weight: one copy serves both": _tied(),
    "function erf": _gated("erf"),
}


def place_of_refusal(part: Part) -> tuple[str, int]:
    """File and line of what raises the reason."""
    frame, line = _last_frame(part)
    return frame.f_code.co_filename, line


def refusing_function(part: Part) -> tuple[str, str]:
    """File and name of the function that raises it."""
    frame, _ = _last_frame(part)
    return frame.f_code.co_filename, frame.f_code.co_name


def _last_frame(part: Part):
    try:
        XnnpackBackend().lower(part.subgraph)
    except Unsupported as error:
        return list(traceback.walk_tb(error.__traceback__))[-1]
    raise AssertionError("it is taken")
