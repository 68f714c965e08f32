"""Calibration: weights rounded so that what a text makes of them changes least, over the fused graph, one by one."""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from llm_export.calibrate.interpreter import GraphRun, Quantize
from llm_export.calibrate.store import Store, key_of, store_of
from llm_export.capture.methods import Methods
from llm_export.checkpoint import Checkpoint
from llm_export.checkpoint.parts import Part
from llm_export.program.instructions import EMBED
from llm_export.program.specs import WeightSpec
from llm_export.quantize import QuantizationWarning
from llm_export.quantize.affine import QuantizedWeight, joined
from llm_export.quantize.gptq import VERSION, Inputs, gptq

__all__ = ["Calibration", "calibrate", "opened"]

# By source name, matrix_name in stacks: rows [out_features, in_features] as they are stored.
Calibration = Mapping[str, QuantizedWeight]


@contextlib.contextmanager
def opened(checkpoint: Checkpoint, methods: Methods, sequences: Sequence[Tensor]) -> Iterator[Store]:
    """Yields where results for these weights and sequences are kept, until the block succeeds. Errors: as store_of"""
    files = {checkpoint.weights.file_of(name) for name in checkpoint.weights.names()}
    ids = hashlib.sha256(b"".join(item.numpy().tobytes() for item in sequences)).hexdigest()
    formats = sorted(repr(spec) for spec in methods.weights.values())
    with store_of(key_of(files, [VERSION, torch.__version__, ids, *formats])) as results:
        yield results


def calibrate(
    methods: Methods, checkpoint: Checkpoint, sequences: Sequence[Tensor], results: Store,
    progress: Callable[[int], object] = lambda count: None,
) -> None:
    """Quantises the linears and the experts of fused methods; what `results` has already stays as it is.

    sequences: int64 [1, T] each   progress: called with 1 after each matrix
    Cost: two passes of the model over the sequences; memory for their activations at the widest place of the graph,
    and for one matrix with a few of in_features squared in float64; of experts also for their stacks as stored
    """

    def quantize(spec: WeightSpec, rows: Tensor, inputs: Callable[[], Inputs]) -> QuantizedWeight:
        found = [results.get(source) for source in spec.sources]
        factors = spec.factors or (1.0,) * len(found)
        if any(part is None for part in found):
            whole, start, found = gptq(rows, spec, inputs()), 0, []
            for source, count, factor in zip(spec.sources, spec.source_rows or (len(rows),), factors, strict=True):
                found.append(whole.rows(start, start + count).times(1 / factor))  # of the source as it is
                results.put(source, found[-1])
                start += count
        return joined([part.times(factor) for part, factor in zip(found, factors, strict=True)])

    run = _run(methods, checkpoint.weights.rows, quantize)
    run.run(sequences, lambda: progress(1))
    calibrated = {spec for node in run.nodes for spec in run.stacks(node).values()}
    experts = [spec for spec in methods.weights.values() if spec.is_rounded and len(spec.shape) == 3]
    experts = [spec for spec in experts if Part.of(spec.sources[0]) is None]
    if left := [spec.name for spec in experts if spec not in calibrated]:
        text = f"experts are not calibrated: {left[0]}" + (f" and {len(left) - 1} more" if left[1:] else "")
        warnings.warn(text, QuantizationWarning, stacklevel=2)


def count_matrices(methods: Methods) -> int:
    """Returns how often `calibrate` calls progress."""
    return _run(methods, lambda name: None, gptq).num_matrices()


def _run(methods: Methods, read: Callable[[str], Tensor | None], quantize: Quantize) -> GraphRun:
    program = methods.programs["verify" if "verify" in methods.programs else EMBED]
    return GraphRun(methods, program, read, quantize)
