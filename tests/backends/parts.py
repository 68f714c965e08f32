"""Subgraphs of one instruction, and the program that runs a lowered one by a backend."""

from __future__ import annotations

import math
import os
import re
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from llm_export.partition.backend import Backend, Blob, Subgraph
from llm_export.program.instructions import Attribute, Dim, Instruction, LoweredMethod, Numbers, Value
from llm_export.program.specs import WeightSpec
from llm_export.quantize.affine import QuantizedWeight, quantize_rows
from llm_export.quantize.pack import pack

ROOT = Path(__file__).resolve().parents[2]
RUN_PART = Path(os.environ.get("MOTE_RUN_PART", ROOT / "build/dev/tests/backends/run_part"))
NO_DEVICE = 3
DTYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2, torch.int64: 3, torch.int8: 5, torch.bool: 7}
T = Dim(1, 0)
TOKENS = (1, 2, 7, 64, 257)  # of the calls that ops are tried with
Size = int | Dim


def dims(*sizes: Size) -> tuple[Dim, ...]:
    return tuple(size if isinstance(size, Dim) else Dim(0, size) for size in sizes)


class Typed(NamedTuple):
    """An input or output of another dtype than float32."""

    shape: Sequence[Size]
    dtype: torch.dtype


class Part:
    """An instruction with its operands: shapes are inputs, tensors and quantised rows are weights, floats constants.

    output: one shape, or a list of several outputs
    """

    def __init__(
        self,
        op: str,
        operands: Sequence,
        output: Sequence[Size] | Typed | list,
        attributes: Mapping[str, Attribute] | None = None,
        dtype: torch.dtype = torch.float32,
    ):
        self.stored: list[Tensor | QuantizedWeight | Stack] = []
        self.specs: list[WeightSpec] = []
        self.constants: dict[str, Tensor] = {}
        values = [self._value(operand, dtype) for operand in operands if operand is not None]
        positions = iter(range(len(values)))
        inputs = [-1 if operand is None else next(positions) for operand in operands]
        arguments = [i for i, value in enumerate(values) if value.kind == "input"]
        made = []
        for each in output if isinstance(output, list) else [output]:
            shape, made_dtype = each if isinstance(each, Typed) else (each, torch.float32)
            made.append(len(values))
            values.append(Value("activation", made_dtype, dims(*shape)))
        instruction = Instruction(op, inputs, list(made), dict(attributes or {}))
        names = [f"x{i}" for i in arguments]
        method = LoweredMethod("part", values, arguments, names, made, [instruction])
        self.subgraph = Subgraph(method, self.specs, self.constants)

    def _value(self, operand, dtype: torch.dtype) -> Value:
        if isinstance(operand, Typed):
            return Value("input", operand.dtype, dims(*operand.shape))
        if isinstance(operand, tuple) and not isinstance(operand, QuantizedWeight):
            return Value("input", dtype, dims(*operand))
        name = f"w{len(self.specs)}"
        if isinstance(operand, float):
            operand = torch.tensor(operand)
            self.constants[name] = operand
        self.stored.append(operand)
        if isinstance(operand, QuantizedWeight | Stack):
            one = operand[0] if isinstance(operand, Stack) else operand
            n, k = one.codes.shape
            shape = (len(operand), n, k) if isinstance(operand, Stack) else (n, k)
            group_size = k // one.multipliers.shape[1]
            spec = WeightSpec((name,), shape, torch.int8, one.bits, group_size, one.per_channel, one.signed)
        else:
            spec = WeightSpec((name,), tuple(operand.shape), operand.dtype)
        self.specs.append(spec)
        return Value("weight", spec.dtype, dims(*spec.shape), weight=len(self.specs) - 1)

    def run(self, backend: Backend, tokens: int, inputs: Sequence[Tensor]) -> Tensor:
        """Lowers it and gives what the backend computes: the last output."""
        return self.run_all(backend, tokens, inputs)[-1]

    def run_all(self, backend: Backend, tokens: int, inputs: Sequence[Tensor]) -> list[Tensor]:
        blob = backend.lower(self.subgraph)
        outputs = [self.subgraph.method.values[i] for i in self.subgraph.method.outputs]
        shapes = [[size.at(tokens) for size in output.shape] for output in outputs]
        weights = [stored_weight(self.specs[i], self.stored[i]) for i in blob.weights]
        return run_blob(backend.name, blob, weights, tokens, inputs, shapes, [output.dtype for output in outputs])


class Rows(QuantizedWeight):
    """Quantised rows that know how they were."""

    bits: int
    per_channel: bool
    signed: bool


class Stack(list):
    """Quantised rows of each expert."""

    def dequantize(self) -> Tensor:
        return torch.stack([each.dequantize() for each in self])


def quantised(rows: Tensor, bits: int, group_size: int, per_channel: bool = False, signed: bool = False) -> Rows:
    result = Rows(*quantize_rows(rows, bits, group_size, per_channel=per_channel, signed=signed))
    result.bits, result.per_channel, result.signed = bits, per_channel, signed
    return result


def run_blob(
    backend: str,
    blob: Blob,
    weights: Sequence[bytes],
    tokens: int,
    inputs: Sequence[Tensor],
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[torch.dtype] | None = None,
    largest: int = 0,
) -> list[Tensor]:
    """Gives the outputs, which have these shapes. dtypes: of outputs; None: float32

    largest: so many of each row of the output, as [rows, largest, 2]: bits of floats, places; they come last
    """
    request = [_integers(len(blob.data)), _padded(blob.data), _integers(len(weights)), *weights]
    request.append(_integers(tokens, len(inputs)))
    for x in inputs:
        x = x if x.dtype in (torch.int64, torch.bool) else x.to(torch.float32)
        request += [_integers(DTYPES[x.dtype], x.dim(), *x.shape), _padded(x.contiguous().numpy().tobytes())]
    request.append(_integers(len(shapes)))
    dtypes = dtypes or [torch.float32] * len(shapes)
    request += [_integers(DTYPES[dtype], len(shape), *shape) for shape, dtype in zip(shapes, dtypes, strict=True)]
    if largest:
        shapes = [*shapes, (math.prod(shapes[0][:-1]), largest, 2)]
        dtypes = [*dtypes, torch.int32]
    result = _run_part(backend, b"".join(request), {"MOTE_TEST_LARGEST": str(largest)} if largest else None)
    if result.returncode == NO_DEVICE:
        pytest.skip(result.stdout.decode().strip())
    assert result.returncode == 0, f"exit {result.returncode}: {result.stderr.decode()}"
    sizes = [math.prod(shape) * dtype.itemsize for shape, dtype in zip(shapes, dtypes, strict=True)]
    assert len(result.stdout) == sum(sizes)
    parts = torch.frombuffer(bytearray(result.stdout), dtype=torch.uint8).split(sizes)
    return [part.clone().view(dtype).view(*shape) for part, shape, dtype in zip(parts, shapes, dtypes, strict=True)]


def run_part_with(library: str) -> str:
    """What is said about a library."""
    result = _run_part("xnnpack", b"", {"MOTE_XNNPACK_LIBRARY": library})
    assert result.returncode == NO_DEVICE
    return result.stdout.decode()


def _run_part(
    backend: str, request: bytes, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    if not RUN_PART.exists():
        pytest.skip(f"{RUN_PART} is not built: build the C++ tests, or name it in MOTE_RUN_PART")
    environment = {**os.environ, **(environment or {})}
    return subprocess.run(
        [RUN_PART, backend], input=request, capture_output=True, cwd=ROOT, env=environment, timeout=60
    )


def stored_weight(spec: WeightSpec, value: Tensor | QuantizedWeight | Stack) -> bytes:
    """A weight of a program as `run_blob` takes it."""
    if isinstance(value, Stack):
        data = torch.cat([pack(each, spec.bits).flatten() for each in value])
    else:
        data = pack(value, spec.bits) if isinstance(value, QuantizedWeight) else value.contiguous()
    raw = (data if data.dim() else data[None]).view(torch.uint8).numpy().tobytes()
    head = (DTYPES[spec.dtype], spec.bits, spec.group_size, len(spec.shape), *spec.shape, len(raw))
    return _integers(*head) + _padded(raw)


def assert_near(actual: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    """tolerance: of the largest difference, relative to the largest expected number"""
    error = (actual - expected).abs().max() / expected.abs().max()
    assert error <= tolerance, float(error)


def numbers(*values: float) -> Numbers:
    return Numbers(values)


def random(*sizes: int, seed: int = 0) -> Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed + sum(sizes)))


def half_tolerance(k: int) -> float:
    """Of a sum of k products in float16: half a unit in the last of 11 bits of each activation and of the result, and
    on CPUs that add in float16 of each sum too, whose errors go either way.
    """
    cpu = Path("/proc/cpuinfo")
    adds_in_half = cpu.exists() and re.search(r"\b(avx512_fp16|asimdhp)\b", cpu.read_text()) is not None
    return 1e-3 + (k**0.5 * 2**-11 if adds_in_half else 0)


def linear_attributes(activations: str, norm: str = "none", unit_offset: int = 0) -> dict:
    return {
        "activations": activations, "norm": norm, "norm_eps": numbers(1e-5), "norm_unit_offset": dims(unit_offset),
    }  # fmt: skip


def _integers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def _padded(raw: bytes) -> bytes:
    return raw + bytes(-len(raw) % 8)
