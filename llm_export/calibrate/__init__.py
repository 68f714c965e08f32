"""Calibration: weights rounded so that what a text makes of them changes least, over the fused graph, one by one."""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor
from torch.export import ExportedProgram

from llm_export.calibrate.interpreter import GraphRun
from llm_export.calibrate.store import Store, key_of, store_of
from llm_export.capture.methods import Methods
from llm_export.checkpoint import Checkpoint
from llm_export.program.instructions import EMBED
from llm_export.program.specs import WeightSpec
from llm_export.quantize import QuantizationWarning
from llm_export.quantize.affine import QuantizedWeight, joined
from llm_export.quantize.gptq import VERSION, Inputs, gptq

__all__ = ["Calibration", "calibrate", "opened"]

Calibration = Mapping[str, QuantizedWeight]  # by source name: rows [out_features, in_features] as they are stored


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
    """Quantises the linears of fused methods; what `results` has already stays as it is.

    sequences: int64 [1, T] each   progress: called with 1 after each linear
    Cost: two passes of the model over the sequences; memory for their activations at the widest place of the graph,
    and for one weight with a few matrices of in_features squared in float64
    """

    def quantize(spec: WeightSpec, rows: Tensor, inputs: Callable[[], Inputs]) -> QuantizedWeight:
        found = [results.get(source) for source in spec.sources]
        if any(part is None for part in found):
            whole, start, found = gptq(rows, spec, inputs()), 0, []
            for source, count in zip(spec.sources, _num_rows(spec, methods, checkpoint), strict=True):
                found.append(whole.rows(start, start + count))
                results.put(source, found[-1])
                start += count
        return joined(found)

    run = GraphRun(methods, _program(methods), checkpoint.weights.rows, quantize)
    run.run(sequences, lambda: progress(1))
    if experts := [spec.name for spec in methods.weights.values() if spec.is_rounded and len(spec.shape) == 3]:
        text = f"experts are not calibrated: {experts[0]}" + (f" and {len(experts) - 1} more" if experts[1:] else "")
        warnings.warn(text, QuantizationWarning, stacklevel=2)


def count_linears(methods: Methods) -> int:
    """Returns how often `calibrate` calls progress."""
    return len(GraphRun(methods, _program(methods), lambda name: None, gptq).linears())


def _program(methods: Methods) -> ExportedProgram:
    return methods.programs["verify" if "verify" in methods.programs else EMBED]


def _num_rows(spec: WeightSpec, methods: Methods, checkpoint: Checkpoint) -> list[int]:
    """Returns how many rows of a weight each of its sources gives."""
    shapes = [
        methods.constants[name].shape if name in methods.constants else checkpoint.weights.shape(name)
        for name in spec.sources
    ]
    return [shape[-1] if spec.transpose else shape[0] for shape in shapes]
