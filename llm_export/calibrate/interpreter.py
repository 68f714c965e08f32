"""Runs a fused graph over the sequences of a text, a node at a time; weights are quantised as it meets them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node
from torch.fx.node import map_arg
from torch.nn import functional as F

from llm_export.calibrate.experts import Tokens, calibrate_expert
from llm_export.capture.hadamard import hadamard, inverse_hadamard
from llm_export.capture.methods import Methods
from llm_export.capture.ops import ReferenceState, normed, round_input
from llm_export.program.specs import WeightSpec
from llm_export.quantize.affine import QuantizedWeight, matrix_name, quantize_for
from llm_export.quantize.encode import applied
from llm_export.quantize.gptq import Inputs
from llm_export.quantize.uses import EXPERTS, heads

NORM_WEIGHT = {torch.ops.mote.linear.default: 4, torch.ops.mote.gated_linear.default: 3}  # which argument
VIEWS = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default)
EMBEDDING = torch.ops.mote.embedding.default
BLOCK_ELEMENTS = 1 << 22  # of a weight quantised without calibration, in one step

# Gives a calibrated weight; asks for the sums over its inputs only where it has to make it.
Quantize = Callable[[WeightSpec, Tensor, Callable[[], Inputs]], QuantizedWeight]


def function_of(node: Node) -> Callable:
    """Returns what computes a node in PyTorch: where a pass took out the copy in front of a view, it copies itself."""
    return torch.reshape if node.target in VIEWS else node.target


class _Lanes(list):
    """What a node gives in each lane; a value that is no such list is the same in all of them."""


class GraphRun:
    """Each sequence has two lanes: in the first half of these weights are quantised, in the second the checkpoint's.

    So the inputs of a weight are those that it will get in the file, and what it should make of them is what the
    checkpoint makes of its own. Values are dropped behind their last reader. Not thread-safe.
    """

    def __init__(self, methods: Methods, program: ExportedProgram, read: Callable[[str], Tensor], quantize: Quantize):
        """read: source name -> tensor, or rows of one that are computed when it is indexed"""
        self.methods, self.program, self.read, self.quantize = methods, program, read, quantize
        self.has_logits = program is methods.programs.get("verify")
        self.nodes = list(program.graph.nodes)
        kinds = program.graph_signature.input_specs
        self.names = {spec.arg.name: spec.target for spec in kinds if spec.kind != InputKind.USER_INPUT}
        self.last_readers = {source: node for node in self.nodes for source in node.all_input_nodes}
        self.last_of_state = {node.kwargs["state"]: node for node in self.nodes if "state" in node.kwargs}

    def linears(self) -> list[Node]:
        """Returns the nodes whose weights are to be calibrated, in order."""
        left_out = heads(self.program.graph.output_node().args[0][0]) if self.has_logits else set()
        found = []
        for node in self.nodes:
            if node.target in NORM_WEIGHT and node not in left_out:
                spec, users = self._spec(node.args[1]), node.args[1].users
                if spec is not None and spec.is_rounded and all(user.target in NORM_WEIGHT for user in users):
                    found.append(node)
        return found

    def stacks(self, node: Node) -> dict[int, WeightSpec]:
        """Returns the stacks of experts of a node that are to be calibrated, by which argument they are."""
        specs = {at: self._spec(node.args[at]) for at in EXPERTS.get(node.target, ())}
        if None in specs.values():  # what is computed from a weight is not in the file
            return {}
        # Of a stack that others read too, the expert that no token reaches here may be calibrated there.
        return {at: spec for at, spec in specs.items() if spec.is_rounded and len(node.args[at].users) == 1}

    def num_matrices(self) -> int:
        """Returns how many matrices are to be calibrated, those of stacks one by one."""
        return len(self.linears()) + sum(spec.shape[0] for node in self.nodes for spec in self.stacks(node).values())

    @torch.no_grad()
    def run(self, sequences: Sequence[Tensor], done: Callable[[], object]) -> None:
        """Runs up to the last node that has weights to calibrate, and calls `done` after each of their matrices.

        sequences: int64 [1, T]
        """
        linears, self.done = {*self.linears()}, done
        last = max((i for i, node in enumerate(self.nodes) if node in linears or self.stacks(node)), default=-1)
        ids = _Lanes([*sequences, *sequences])
        inputs = iter((ids, _Lanes([torch.arange(item.shape[1])[None] for item in ids])))
        self.num_rounded = len(sequences)
        self.states = [ReferenceState() for _ in ids]
        self.values: dict[Node, Any] = {}
        for node in self.nodes[: last + 1]:
            if node.op == "placeholder":
                self.values[node] = next(inputs) if node.name not in self.names else self._weight(node)
            else:
                self.values[node] = self._evaluate(node)
                self._forget(node)
            if node in linears:
                done()

    def _spec(self, node: Node) -> WeightSpec | None:
        return self.methods.weights.get(self.names.get(node.name, ""))

    def _weight(self, node: Node) -> WeightSpec | Tensor | None:
        """What the value of a weight is until it is read: itself if it is small, else how to get it."""
        spec = self._spec(node)
        return spec if spec is None or spec.is_rounded or math.prod(spec.shape) > BLOCK_ELEMENTS else self._dense(spec)

    def _lane_states(self) -> Iterable[ReferenceState]:
        return self.states

    def _forget(self, node: Node) -> None:
        for source in {*node.all_input_nodes, node}:
            if self.last_readers.get(source, source) is node:
                self.values.pop(source, None)
        state = node.kwargs.get("state")
        if state is not None and self.last_of_state[state] is node:
            for lane in self._lane_states():
                lane.caches.pop(state, None)
                lane.recurrent.pop(state, None)

    def _evaluate(self, node: Node) -> Any:
        spec = self.values.get(node.args[1]) if node.target in NORM_WEIGHT or node.target is EMBEDDING else None
        if isinstance(spec, WeightSpec) and spec.is_rounded:
            return self._embedding(node, spec) if node.target is EMBEDDING else self._linear(node, spec)
        if stacks := self.stacks(node):
            return self._experts(node, stacks)
        quantized, dense = {}, {}
        for source in node.all_input_nodes:
            if isinstance(spec := self.values[source], WeightSpec):
                dense[source] = self._dense(spec)
                quantized[source] = self._rounded(spec, dense[source]) if spec.is_rounded else dense[source]
        if not any(isinstance(self.values[source], _Lanes) for source in node.all_input_nodes) and not quantized:
            return self._call(node, 0, {})
        lanes = range(len(self.states))
        return _Lanes([self._call(node, lane, quantized if lane < self.num_rounded else dense) for lane in lanes])

    def _arguments(self, node: Node, lane: int, weights: dict[Node, Tensor]) -> tuple[list, dict]:
        def value(source: Node) -> Any:
            found = weights[source] if source in weights else self.values[source]
            return found[lane] if isinstance(found, _Lanes) else found

        args, kwargs = map_arg((node.args, node.kwargs), value)
        return list(args), dict(kwargs)

    def _call(self, node: Node, lane: int, weights: dict[Node, Tensor], **attributes) -> Any:
        args, kwargs = self._arguments(node, lane, weights)
        if lane >= self.num_rounded and "activations" in kwargs:
            kwargs["activations"] = "float"
        with self.states[lane]:
            return function_of(node)(*args, **kwargs)

    def _linear(self, node: Node, spec: WeightSpec) -> _Lanes:
        weight = self._dense(spec)
        rounded = [round_input(self._input(node, lane), spec.activations) for lane in range(self.num_rounded)]

        def inputs() -> Inputs:
            sums = Inputs.empty(spec.shape[1])
            for lane, x in enumerate(rounded, self.num_rounded):
                wanted = self._input(node, lane)
                sums.add(x, hadamard(wanted) if spec.is_rotated else wanted)
            return sums

        rows = hadamard(weight) if spec.is_rotated else weight
        result = self.quantize(spec, rows, inputs).dequantize()
        del rows
        outputs = []
        for lane, x in enumerate(rounded):
            args, kwargs = self._arguments(node, lane, {node.args[1]: result})
            kwargs |= {"activations": "float", "norm": "none"}
            outputs.append(node.target(x, *args[1 : NORM_WEIGHT[node.target]], **kwargs))
        others = range(self.num_rounded, len(self.states))
        return _Lanes(outputs + [self._call(node, lane, {node.args[1]: weight}) for lane in others])

    def _experts(self, node: Node, stacks: dict[int, WeightSpec]) -> _Lanes:
        """Calibrates one expert after another, each in float32 only while it is its turn."""
        lanes = [self._arguments(node, lane, {})[0] for lane in range(len(self.states))]
        tokens = [Tokens.of(part) for part in (lanes[: self.num_rounded], lanes[self.num_rounded :])]
        weights = [self._stored(each, _whole) if isinstance(each, WeightSpec) else each for each in lanes[0][3:]]

        def quantize(expert: int, index: int, rows: Tensor, inputs: Callable[[], Inputs] | None) -> Tensor:
            at = EXPERTS[node.target][index]
            if at not in stacks:
                spec = self._spec(node.args[at])
                return self._rounded(spec, rows) if spec.is_rounded else rows
            sources = tuple(matrix_name(source, expert) for source in stacks[at].sources)
            spec = replace(stacks[at], sources=sources, shape=tuple(rows.shape))
            if inputs is None:
                found = quantize_for(spec, rows)
            else:
                found = self.quantize(spec, hadamard(rows) if spec.is_rotated else rows, inputs)
            self.done()
            return found.dequantize()

        for expert in range(len(weights[0])):
            matrices, biases = (
                [None if each is None else each[expert].to(torch.float32) for each in part]
                for part in (weights[:2], (*weights[2:], None, None)[:2])
            )
            calibrate_expert(expert, matrices, biases, node.kwargs, tokens, quantize)
        outputs = torch.cat([part.output for part in tokens])
        return _Lanes(outputs.split([len(args[0]) for args in lanes]))

    def _input(self, node: Node, lane: int) -> Tensor:
        """Returns what a linear rounds: its input, normalised if it does that."""
        return self._normed(node, self._arguments(node, lane, {node.args[1]: None})[0])

    @staticmethod
    def _normed(node: Node, args: Sequence) -> Tensor:
        weight = args[NORM_WEIGHT[node.target]] if len(args) > NORM_WEIGHT[node.target] else None
        name, eps, offset = (node.kwargs.get(key) for key in ("norm", "norm_eps", "norm_unit_offset"))
        return normed(args[0], name or "none", weight, eps or 0.0, offset or 0)

    def _embedding(self, node: Node, spec: WeightSpec) -> _Lanes:
        ids = self.values[node.args[0]]
        distinct, places = torch.cat([item.flatten() for item in ids]).unique(return_inverse=True)
        rows = self._parts(spec, lambda part: part[distinct])
        quantized = quantize_for(spec, rows).dequantize()
        tables = (inverse_hadamard(quantized) if spec.is_rotated else quantized, rows)
        parts = places.split([item.numel() for item in ids])
        return _Lanes([
            F.embedding(part.view(item.shape), tables[lane >= self.num_rounded])
            for lane, (part, item) in enumerate(zip(parts, ids, strict=True))
        ])  # fmt: skip

    def _rounded(self, spec: WeightSpec, weight: Tensor) -> Tensor:
        """Returns a weight, or a stack of them, as it is without calibration."""
        matrices = weight.view(-1, weight.shape[-1])
        parts = matrices.split(max(BLOCK_ELEMENTS // weight.shape[-1], 1))
        return torch.cat([quantize_for(spec, part).dequantize() for part in parts]).view(weight.shape)

    def _dense(self, spec: WeightSpec) -> Tensor:
        return self._parts(spec, _whole)

    def _parts(self, spec: WeightSpec, rows: Callable[[Tensor], Tensor]) -> Tensor:
        """Returns rows of what a weight is made from: float32, or the integers that it holds."""
        value = self._stored(spec, rows)
        return value.to(torch.float32) if value.is_floating_point() else value

    def _stored(self, spec: WeightSpec, rows: Callable[[Tensor], Tensor]) -> Tensor:
        constants = self.methods.constants
        parts = [constants[name] if name in constants else self.read(name) for name in spec.sources]
        parts = [part[: spec.shape[0]] for part in parts] if spec.takes_first else parts
        parts = [rows(part[:].transpose(-1, -2) if spec.transpose else part) for part in parts]
        parts = [applied(spec, index, part) for index, part in enumerate(parts)]
        return parts[0] if len(parts) == 1 else torch.cat(parts, -2 if len(spec.shape) == 3 else 0)


def _whole(part: Tensor) -> Tensor:
    return part[:] if part.shape else part
