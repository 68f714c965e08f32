"""Subgraphs of one instruction, and the program that runs a lowered one by a backend."""

from __future__ import annotations

import math
import os
import re
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

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
DTYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2, torch.int64: 3, torch.int8: 5}
T = Dim(1, 0)
TOKENS = (1, 2, 7, 64, 257)  # of the calls that ops are tried with
Size = int | Dim


def dims(*sizes: Size) -> tuple[Dim, ...]:
    return tuple(size if isinstance(size, Dim) else Dim(0, size) for size in sizes)


class Part:
    """An instruction with its operands: shapes are inputs, tensors and quantised rows are weights, floats constants."""

    def __init__(
        self,
        op: str,
        operands: Sequence,
        output: Sequence[Size],
        attributes: Mapping[str, Attribute] | None = None,
        dtype: torch.dtype = torch.float32,
    ):
        self.stored: list[Tensor | QuantizedWeight] = []
        self.specs: list[WeightSpec] = []
        self.constants: dict[str, Tensor] = {}
        values = [self._value(operand, dtype) for operand in operands if operand is not None]
        positions = iter(range(len(values)))
        inputs = [-1 if operand is None else next(positions) for operand in operands]
        values.append(Value("activation", torch.float32, dims(*output)))
        arguments = [i for i, value in enumerate(values) if value.kind == "input"]
        instruction = Instruction(op, inputs, [len(values) - 1], dict(attributes or {}))
        names = [f"x{i}" for i in arguments]
        method = LoweredMethod("part", values, arguments, names, [len(values) - 1], [instruction])
        self.subgraph = Subgraph(method, self.specs, self.constants)

    def _value(self, operand, dtype: torch.dtype) -> Value:
        if isinstance(operand, tuple) and not isinstance(operand, QuantizedWeight):
            return Value("input", dtype, dims(*operand))
        name = f"w{len(self.specs)}"
        if isinstance(operand, float):
            operand = torch.tensor(operand)
            self.constants[name] = operand
        self.stored.append(operand)
        if isinstance(operand, QuantizedWeight):
            n, k = operand.codes.shape
            bits = operand.bits
            group_size = k // operand.multipliers.shape[1]
            spec = WeightSpec((name,), (n, k), torch.int8, bits, group_size, operand.per_channel, operand.signed)
        else:
            spec = WeightSpec((name,), tuple(operand.shape), operand.dtype)
        self.specs.append(spec)
        return Value("weight", spec.dtype, dims(*spec.shape), weight=len(self.specs) - 1)

    def run(self, backend: Backend, tokens: int, inputs: Sequence[Tensor]) -> Tensor:
        """Lowers it and gives what the backend computes."""
        blob = backend.lower(self.subgraph)
        output = self.subgraph.method.values[-1].shape
        shape = [size.at(tokens) for size in output]
        weights = [stored_weight(self.specs[i], self.stored[i]) for i in blob.weights]
        return run_blob(backend.name, blob, weights, tokens, inputs, [shape])[0]


class Rows(QuantizedWeight):
    """Quantised rows that know how they were."""

    bits: int
    per_channel: bool
    signed: bool


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
) -> list[Tensor]:
    """Gives the outputs, which have these shapes."""
    request = [_integers(len(blob.data)), _padded(blob.data), _integers(len(weights)), *weights]
    request.append(_integers(tokens, len(inputs)))
    for x in inputs:
        x = x if x.dtype == torch.int64 else x.to(torch.float32)
        request += [_integers(DTYPES[x.dtype], x.dim(), *x.shape), _padded(x.contiguous().numpy().tobytes())]
    request.append(_integers(len(shapes)))
    request += [_integers(len(shape), *shape) for shape in shapes]
    result = _run_part(backend, b"".join(request))
    if result.returncode == NO_DEVICE:
        pytest.skip(result.stdout.decode().strip())
    assert result.returncode == 0, result.stderr.decode()
    sizes = [math.prod(shape) for shape in shapes]
    assert len(result.stdout) == 4 * sum(sizes)
    flat = torch.frombuffer(bytearray(result.stdout), dtype=torch.float32).split(sizes)
    return [x.view(*shape) for x, shape in zip(flat, shapes, strict=True)]


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


def stored_weight(spec: WeightSpec, value: Tensor | QuantizedWeight) -> bytes:
    """A weight of a program as `run_blob` takes it."""
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
