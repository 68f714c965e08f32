"""How much worse a model's predictions become if one weight is rounded, measured for all weights in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg
from torch.nn import functional as F

from llm_export.calibrate.interpreter import EMBEDDING, NORM_WEIGHT, GraphRun, function_of
from llm_export.capture.hadamard import inverse_hadamard
from llm_export.capture.methods import Methods
from llm_export.capture.ops import ReferenceState
from llm_export.program.specs import WeightSpec
from llm_export.quantize.affine import joined, quantize_for

PROBE_BITS = 3  # of a linear whose effect is measured: enough to be seen beside the noise of float32
TABLE_PROBE_BITS = 4
BASE = 0  # the lane in which nothing is rounded
BLOCK_ELEMENTS = 1 << 20


@dataclass
class Probe:
    """What was measured of one weight.

    lane: in which it alone is rounded to `bits`   errors: of its products, by bits   divergence: nats, of all tokens
    """

    spec: WeightSpec
    is_table: bool
    lane: int
    bits: int
    errors: dict[int, float] = field(default_factory=dict)
    divergence: float = 0.0

    def loss(self, bits: int) -> float:
        """Returns what the predictions lose with so many bits: it grows with the squared error of the products."""
        return self.divergence * self.errors[bits] / max(self.errors[self.bits], 1e-30)


class SensitivityRun(GraphRun):
    """Each weight has a lane, in which it alone is rounded; the lane begins where that is read, and is the base before.

    So one pass over the graph measures all weights, with one of them in memory at a time. Not thread-safe.
    """

    def __init__(self, methods: Methods, read: Callable[[str], Tensor], choices: Callable[[bool], Iterable[int]]):
        """choices: whether it is a table -> numbers of bits that a weight may get"""
        super().__init__(methods, methods.programs["verify"], read, quantize=None)
        self.choices = choices
        self.probes: dict[tuple[str, ...], Probe] = {}
        self.head = [node for node in self.nodes if node.target in NORM_WEIGHT][-1]

    @torch.no_grad()
    def measure(self, sequences: Sequence[Tensor], done: Callable[[], object]) -> list[Probe]:
        """sequences: int64 [1, T]   done: called after each linear of each sequence"""
        for ids in sequences:
            inputs = iter(({BASE: ids}, {BASE: torch.arange(ids.shape[1])[None]}))
            self.values, self.lane_states = {}, {BASE: ReferenceState()}
            for node in self.nodes[: self.nodes.index(self.head)]:
                if node.op == "placeholder":
                    self.values[node] = next(inputs) if node.name not in self.names else self._weight(node)
                    continue
                self.values[node] = self._evaluate(node)
                self._forget(node)
                if node.target in NORM_WEIGHT:
                    done()
            self._compare()
            done()
        return list(self.probes.values())

    def _probe(self, spec: WeightSpec, is_table: bool) -> Probe:
        bits = TABLE_PROBE_BITS if is_table else PROBE_BITS
        return self.probes.setdefault(spec.sources, Probe(spec, is_table, len(self.probes) + 1, bits))

    def _lane_states(self) -> Iterable[ReferenceState]:
        return self.lane_states.values()

    def _evaluate(self, node: Node) -> Any:
        found = [self.values[source] for source in node.all_input_nodes]
        lanes = sorted({BASE, *(lane for value in found if isinstance(value, dict) for lane in value)})
        spec = self.values.get(node.args[1]) if node.target in NORM_WEIGHT or node.target is EMBEDDING else None
        if isinstance(spec, WeightSpec) and spec.is_rounded:
            return self._embedding(node, spec) if node.target is EMBEDDING else self._linear(node, spec, lanes)
        pairs = zip(node.all_input_nodes, found, strict=True)
        weights = {source: self._dense(value) for source, value in pairs if isinstance(value, WeightSpec)}
        if not any(isinstance(value, dict) for value in found) and not weights:
            return self._in_lane(node, BASE, weights)
        return {lane: self._in_lane(node, lane, weights) for lane in lanes}

    def _in_lane(self, node: Node, lane: int, weights: dict[Node, Tensor]) -> Any:
        def value(source: Node) -> Any:
            found = weights[source] if source in weights else self.values[source]
            return found.get(lane, found.get(BASE)) if isinstance(found, dict) else found

        args, kwargs = map_arg((node.args, node.kwargs), value)
        if "activations" in kwargs:
            kwargs = {**kwargs, "activations": "float"}
        states, base = self.lane_states.setdefault(lane, ReferenceState()), self.lane_states[BASE]
        index = node.kwargs.get("state")
        if index in base.caches and index not in states.caches:  # a layer that reads the cache of another
            states.caches[index] = base.caches[index]
        with states:
            return function_of(node)(*args, **kwargs)

    def _linear(self, node: Node, spec: WeightSpec, lanes: list[int]) -> dict[int, Tensor]:
        weight, probe = self._dense(spec), self._probe(spec, False)
        args = map_arg(node.args, lambda source: self._base(source) if source is not node.args[1] else None)
        x = self._normed(node, args).flatten(0, -2)
        for bits in {*self.choices(False), probe.bits}:
            off = self._effective(replace(spec, bits=bits), weight) - weight
            probe.errors[bits] = probe.errors.get(bits, 0.0) + float(F.linear(x, off).square().sum(dtype=torch.float64))
        outputs = {lane: self._in_lane(node, lane, {node.args[1]: weight}) for lane in lanes if lane != probe.lane}
        rounded = self._effective(replace(spec, bits=probe.bits), weight)
        return outputs | {probe.lane: self._in_lane(node, probe.lane, {node.args[1]: rounded})}

    def _base(self, source: Node) -> Any:
        found = self.values[source]
        return found[BASE] if isinstance(found, dict) else found

    def _embedding(self, node: Node, spec: WeightSpec) -> dict[int, Tensor]:
        ids, probe = self._base(node.args[0]), self._probe(spec, True)
        rows = self._parts(spec, lambda part: part[ids.flatten()])
        for bits in {*self.choices(True), probe.bits}:
            off = self._effective(replace(spec, bits=bits), rows) - rows
            probe.errors[bits] = probe.errors.get(bits, 0.0) + float(off.square().sum(dtype=torch.float64))
        rounded = self._effective(replace(spec, bits=probe.bits), rows)
        return {lane: part.view(*ids.shape, -1) for lane, part in ((BASE, rows), (probe.lane, rounded))}

    def _effective(self, spec: WeightSpec, weight: Tensor) -> Tensor:
        """Returns rounded rows as they would be were inputs not rotated, float32 [N, K]."""
        blocks = weight.split(max(BLOCK_ELEMENTS // weight.shape[1], 1))
        found = joined([quantize_for(spec, block) for block in blocks]).dequantize()
        return inverse_hadamard(found) if spec.is_rotated else found

    def _compare(self) -> None:
        """Runs the head and what follows it, a lane at a time, and adds up how far each is from the base."""
        node, spec = self.head, self.values.get(self.head.args[1])
        rest = [n for n in self.nodes[self.nodes.index(node) :] if n.op == "call_function"]
        output = self.program.graph.output_node().args[0][0]
        weight, rounded, own = spec, None, None
        if isinstance(spec, WeightSpec):
            weight = self._dense(spec)
            if spec.is_rounded:
                own = self._probe(spec, True)
                rounded = self._effective(replace(spec, bits=own.bits), weight)
                if not own.errors:
                    self._table_errors(own, weight)
        expected = None
        for lane in (BASE, *(probe.lane for probe in self.probes.values())):
            used = rounded if own is not None and lane == own.lane else weight
            for each in rest:
                self.values[each] = {lane: self._in_lane(each, lane, {node.args[1]: used})}
            found = self.values[output][lane][0].log_softmax(-1)
            if expected is None:
                expected = found
                continue
            (probe,) = (probe for probe in self.probes.values() if probe.lane == lane)
            probe.divergence += float(F.kl_div(found, expected, reduction="sum", log_target=True).clamp(min=0))

    def _table_errors(self, probe: Probe, weight: Tensor) -> None:
        for bits in {*self.choices(True), probe.bits}:
            off = self._effective(replace(probe.spec, bits=bits), weight) - weight
            probe.errors[bits] = float(off.square().sum(dtype=torch.float64))
