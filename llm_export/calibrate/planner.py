"""Mixed precision: bits of each weight, such that predictions lose least within an average."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import Tensor

from llm_export.calibrate.interpreter import NORM_WEIGHT
from llm_export.calibrate.sensitivity import Probe, SensitivityRun
from llm_export.capture.methods import Methods
from llm_export.checkpoint import Checkpoint
from llm_export.errors import ArgumentError
from llm_export.program.formats import stored_bytes
from llm_export.program.specs import WeightSpec
from llm_export.quantize import Override

LINEAR_BITS = (2, 3, 4, 5, 6, 8)
TABLE_BITS = (4, 5, 6, 8)  # of embedding and head
NUM_SEQUENCES = 2  # of the text: how weights compare shows on few tokens


def count_steps(methods: Methods) -> int:
    """Returns how often `plan_bits` calls progress."""
    return NUM_SEQUENCES * sum(node.target in NORM_WEIGHT for node in methods.programs["verify"].graph.nodes)


def plan_bits(
    methods: Methods, checkpoint: Checkpoint, sequences: Sequence[Tensor], target: float, fixed: Sequence[Override],
    progress: Callable[[int], object] = lambda count: None,
) -> list[Override]:
    """Returns what gives each weight its bits, so that all quantised weights together take `target` bits a weight.

    methods: fused, of a recipe that quantises   fixed: overrides of the user, whose weights stay as they are
    Errors: ArgumentError if the target is beyond what the bits of the weights allow
    Cost: a pass of the model over a few sequences for every two weights
    """
    run = SensitivityRun(methods, checkpoint.weights.rows, lambda is_table: TABLE_BITS if is_table else LINEAR_BITS)
    probes = run.measure(sequences[:NUM_SEQUENCES], lambda: progress(1))
    free = [probe for probe in probes if not any(override.matches(probe.spec.sources) for override in fixed)]
    taken = {probe.spec.sources for probe in free}
    others = {spec.sources: spec for spec in methods.weights.values() if spec.is_rounded and spec.sources not in taken}
    chosen = choose(free, list(others.values()), target)
    return [
        Override(source.rpartition(".")[0], f"{'8da' if probe.spec.activations != 'float' else ''}{bits}w")
        for probe, bits in zip(free, chosen, strict=True)
        if bits != probe.spec.bits
        for source in probe.spec.sources
    ]


def choose(probes: Sequence[Probe], others: Sequence[WeightSpec], target: float) -> list[int]:
    """Returns the bits of each probe: from the fewest on, always the step that saves most loss a byte.

    others: weights that take part in the average as they are
    Errors: ArgumentError if the target is below the fewest bits or above the most
    """
    weights = sum(math.prod(spec.shape) for spec in (*others, *(probe.spec for probe in probes)))
    budget = target * weights / 8 - sum(map(stored_bytes, others))
    choices = [_hull(probe) for probe in probes]
    least, most = (sum(_bytes(probe, steps[i]) for probe, steps in zip(probes, choices, strict=True)) for i in (0, -1))
    if not probes or budget < least:
        fewest = (least + sum(map(stored_bytes, others))) * 8 / max(weights, 1)
        raise ArgumentError(f"target_bits = {target}: must be at least {math.ceil(fewest * 100) / 100} for this model")
    if budget > most * 1.001 + 1:
        largest = (most + sum(map(stored_bytes, others))) * 8 / weights
        raise ArgumentError(f"target_bits = {target}: must be at most {math.floor(largest * 100) / 100} for this model")
    at, left = [0] * len(probes), budget - least
    while True:
        best = None
        for index, (probe, steps) in enumerate(zip(probes, choices, strict=True)):
            if at[index] + 1 < len(steps):
                now, then = steps[at[index]], steps[at[index] + 1]
                cost = _bytes(probe, then) - _bytes(probe, now)
                gain = (probe.loss(now) - probe.loss(then)) / cost
                if cost <= left and (best is None or gain > best[0]):
                    best = (gain, index, cost)
        if best is None:
            return [steps[i] for i, steps in zip(at, choices, strict=True)]
        at[best[1]] += 1
        left -= best[2]


def _hull(probe: Probe) -> list[int]:
    """Returns the numbers of bits, ascending, of which each step saves less a byte than the one before."""
    kept: list[int] = []
    for bits in sorted(probe.errors):
        if bits == probe.bits and bits not in (TABLE_BITS if probe.is_table else LINEAR_BITS):
            continue
        while len(kept) > 1 and _gain(probe, kept[-1], bits) >= _gain(probe, kept[-2], kept[-1]):
            kept.pop()
        kept.append(bits)
    return kept


def _gain(probe: Probe, fewer: int, more: int) -> float:
    return (probe.loss(fewer) - probe.loss(more)) / (_bytes(probe, more) - _bytes(probe, fewer))


def _bytes(probe: Probe, bits: int) -> int:
    return stored_bytes(replace(probe.spec, bits=bits))
