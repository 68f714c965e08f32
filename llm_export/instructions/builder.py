"""Builds one method's values and instructions from graph nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from llm_export.errors import ProgramError, UnsupportedError
from llm_export.instructions import dims
from llm_export.program.instructions import Attribute, Dim, Instruction, LoweredMethod, Numbers, Value
from llm_export.program.specs import WeightSpec

# Strides are decided at this T: it divides no size of a real model, so no two sizes are equal by accident.
PROBE_TOKENS = 10007


def canonical_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of an activation: float32, int64 or bool."""
    if dtype == torch.bool:
        return dtype
    if dtype.is_complex:
        raise ProgramError(f"dtype {dtype}: activations are float32, int64 or bool")
    return torch.float32 if dtype.is_floating_point else torch.int64


def origin_of(node: Node) -> str:
    """Module path in the Hugging Face model that a node came from, "" where torch did not record one."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [entry[0] for entry in stack.values()]
    return paths[-1] if paths else ""


def source_line(node: Node) -> str:
    """The innermost transformers (else: last) source line of a node, as "file.py:12 in forward"."""
    frames = re.findall(r'File "([^"]+)", line (\d+), in (\w+)', node.meta.get("stack_trace") or "")
    if not frames:
        return "an unknown line"
    chosen = next((frame for frame in reversed(frames) if "transformers" in frame[0]), frames[-1])
    return f"{chosen[0].rsplit('/', 1)[-1]}:{chosen[1]} in {chosen[2]}"


class WeightTable:
    """The weights of a program, shared by its methods; equal constants share one entry."""

    def __init__(self, specs: dict[str, WeightSpec], constants: dict[str, torch.Tensor]):
        self.specs = specs
        self.constants = dict(constants)
        self.weights: list[WeightSpec] = []
        self._index: dict[tuple, int] = {}

    def index_of(self, spec: WeightSpec) -> int:
        key = (spec.name, spec.transpose)
        if key not in self._index:
            self._index[key] = len(self.weights)
            self.weights.append(spec)
        return self._index[key]

    def constant(self, tensor: torch.Tensor) -> WeightSpec:
        """A weight that holds numbers of the graph itself."""
        name = f"constant.{str(tensor.dtype).removeprefix('torch.')}.{tensor.tolist()!r}"
        self.constants.setdefault(name, tensor)
        return WeightSpec(sources=(name,), shape=tuple(tensor.shape), dtype=tensor.dtype)


class MethodBuilder:
    """Appends values and instructions; every `emit` returns the index of its output value."""

    def __init__(self, name: str, table: WeightTable, model_type: str):
        self.method = LoweredMethod(name, values=[], inputs=[], input_names=[], outputs=[], instructions=[])
        self.table = table
        self.model_type = model_type
        self.node: Node | None = None  # the node that is being lowered
        self.environment: dict[Node, Any] = {}
        self._probes: list[torch.Tensor] = []
        self._weight_values: dict[int, int] = {}

    # values

    def add_value(self, value: Value, probe: torch.Tensor | None = None) -> int:
        dims.product(value.shape)  # raises if the size is not linear in T
        if probe is None:
            probe = torch.empty([size.at(PROBE_TOKENS) for size in value.shape], dtype=value.dtype, device="meta")
        self.method.values.append(value)
        self._probes.append(probe)
        return len(self.method.values) - 1

    def add_input(self, name: str, dtype: torch.dtype, shape: tuple[Dim, ...]) -> int:
        index = self.add_value(Value("input", canonical_dtype(dtype), shape))
        self.method.inputs.append(index)
        self.method.input_names.append(name)
        return index

    def weight(self, spec: WeightSpec) -> int:
        weight = self.table.index_of(spec)
        if weight not in self._weight_values:
            shape = tuple(dims.constant(size) for size in spec.shape)
            dtype = torch.int8 if spec.bits else spec.dtype
            self._weight_values[weight] = self.add_value(Value("weight", dtype, shape, weight=weight))
        return self._weight_values[weight]

    def number(self, value: bool | int | float, dtype: torch.dtype) -> int:
        return self.constant(torch.tensor(value, dtype=dtype))

    def constant(self, tensor: torch.Tensor) -> int:
        return self.weight(self.table.constant(tensor))

    def shape(self, index: int) -> tuple[Dim, ...]:
        return self.method.values[index].shape

    def rank(self, index: int) -> int:
        return len(self.shape(index))

    def dtype(self, index: int) -> torch.dtype:
        return self.method.values[index].dtype

    # arguments of the node

    def tensor(self, argument: Any) -> int:
        """The value of a node argument that must be one tensor."""
        index = self.environment.get(argument) if isinstance(argument, Node) else None
        if not isinstance(index, int):
            raise self.unsupported(f"argument {argument} is not a tensor")
        return index

    def optional_tensor(self, argument: Any) -> int:
        return -1 if argument is None else self.tensor(argument)

    def dim(self, argument: Any) -> Dim:
        """A size or bound that is a number or a symbolic node."""
        return dims.dim_of(argument.meta["val"] if isinstance(argument, Node) else argument)

    def unsupported(self, what: str) -> UnsupportedError:
        node = self.node
        where = f"{origin_of(node) or 'the model'}, {source_line(node)}"
        return UnsupportedError(self.model_type, f"{node.target} at {where}: {what}")

    # instructions

    def append(
        self, op: str, inputs: Sequence[int], outputs: Sequence[int], attributes: dict[str, Attribute] | None = None
    ) -> None:
        origin = origin_of(self.node) if self.node is not None else ""
        self.method.instructions.append(Instruction(op, list(inputs), list(outputs), attributes or {}, origin))

    def emit(
        self,
        op: str,
        inputs: Sequence[int],
        shape: Sequence[Dim],
        dtype: torch.dtype = torch.float32,
        **attributes: Any,
    ) -> int:
        """Appends an instruction with one contiguous output."""
        output = self.add_value(Value("activation", dtype, tuple(shape)))
        self.append(op, inputs, [output], {name: attribute(value) for name, value in attributes.items()})
        return output

    def emit_view(
        self, op: str, x: int, shape: Sequence[Dim], view: Callable[[torch.Tensor], torch.Tensor], **attributes: Any
    ) -> int:
        """Appends an instruction whose output shares x's storage; `view` does the same to a tensor at the probe's T."""
        output = self.add_value(Value("activation", self.dtype(x), tuple(shape), alias_of=x), view(self._probes[x]))
        self.append(op, [x], [output], {name: attribute(value) for name, value in attributes.items()})
        return output

    def view(self, x: int, shape: Sequence[Dim]) -> int:
        """Gives x another shape, through a copy where its strides do not allow a view."""
        shape = tuple(shape)
        if shape == self.shape(x):
            return x
        sizes = [size.at(PROBE_TOKENS) for size in shape]
        try:
            self._probes[x].view(sizes)
        except RuntimeError:
            x = self.clone(x)
        return self.emit_view("aten.view", x, shape, lambda probe: probe.view(sizes), size=shape)

    def permute(self, x: int, order: Sequence[int]) -> int:
        if list(order) == list(range(self.rank(x))):
            return x
        shape = [self.shape(x)[i] for i in order]
        return self.emit_view("aten.permute", x, shape, lambda probe: probe.permute(*order), dims=list(order))

    def expand(self, x: int, shape: Sequence[Dim]) -> int:
        shape = tuple(shape)
        if shape == self.shape(x):
            return x
        sizes = [size.at(PROBE_TOKENS) for size in shape]
        return self.emit_view("aten.expand", x, shape, lambda probe: probe.expand(sizes), size=shape)

    def slice(self, x: int, dim: int, start: Dim, end: Dim, step: int = 1) -> int:
        """Errors: UnsupportedError unless the coefficient of T in `end` - `start` is a multiple of `step`."""
        size = dims.add(end, dims.scale(start, -1))
        if step != 1:
            if size.tokens % step:
                raise self.unsupported(
                    f"slice of {size} elements with step {step} is not linear in the number of tokens"
                )
            size = Dim(size.tokens // step, -(-size.constant // step))
        if size == self.shape(x)[dim]:
            return x
        shape = [size if i == dim else other for i, other in enumerate(self.shape(x))]
        bounds = start.at(PROBE_TOKENS), end.at(PROBE_TOKENS)
        cut = (slice(None),) * dim + (slice(*bounds, step),)
        return self.emit_view(
            "aten.slice", x, shape, lambda probe: probe[cut], dim=dim, start=start, end=end, step=step
        )

    def clone(self, x: int) -> int:
        return self.emit("aten.clone", [x], self.shape(x), self.dtype(x))

    def contiguous(self, x: int) -> int:
        return x if self._probes[x].is_contiguous() else self.clone(x)

    def cast(self, x: int, dtype: torch.dtype) -> int:
        return x if self.dtype(x) == dtype else self.emit("aten._to_copy", [x], self.shape(x), dtype)


def attribute(value: Any) -> Attribute:
    """Turns a Python value into an attribute: text, numbers (float) or Dims (bool, int, Dim or a sequence of them)."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return Numbers((value,))
    if isinstance(value, Dim):
        return (value,)
    if isinstance(value, (bool, int)):
        return (dims.constant(value),)
    return tuple(item if isinstance(item, Dim) else dims.constant(item) for item in value)
