"""Runs instructions with torch in the arenas of the memory plan: an oracle for passes, instructions and plan."""

from __future__ import annotations

import torch
from torch import Tensor

from llm_export.capture.ops import ReferenceState
from llm_export.plan import plan_method
from llm_export.program.instructions import Instruction, LoweredMethod, MemoryPlan, MethodPlan, Numbers

VIEWS = {"view", "permute", "unsqueeze", "squeeze", "expand", "slice", "select"}
aten = torch.ops.aten


def evaluate(instruction: Instruction, num_tokens: int) -> dict:
    """Attributes as Python values: text, float, int, or a list of ints."""
    result = {}
    for name, value in instruction.attributes.items():
        if isinstance(value, str):
            result[name] = value
        elif isinstance(value, Numbers):
            result[name] = value.values[0]
        else:
            numbers = [dim.at(num_tokens) for dim in value]
            result[name] = numbers if name in LISTS or len(numbers) != 1 else numbers[0]
    return result


LISTS = {"size", "dims", "pad"}

FUNCTIONS = {
    "view": lambda x, a: x.view(a["size"]),
    "permute": lambda x, a: x.permute(a["dims"]),
    "unsqueeze": lambda x, a: x.unsqueeze(a["dim"]),
    "squeeze": lambda x, a: x.squeeze(tuple(a["dims"])),
    "expand": lambda x, a: x.expand(a["size"]),
    "slice": lambda x, a: aten.slice(x, a["dim"], a["start"], a["end"], a["step"]),
    "select": lambda x, a: x.select(a["dim"], a["index"]),
    "clone": lambda x, a: x.clone(memory_format=torch.contiguous_format),
    "cat": lambda *x: torch.cat(x[:-1], dim=x[-1]["dim"]),
    "constant_pad_nd": lambda x, a: aten.constant_pad_nd(x, a["pad"], a["value"]),
    "tril": lambda x, a: x.tril(a["diagonal"]),
    "triu": lambda x, a: x.triu(a["diagonal"]),
    "where": lambda c, x, y, a: torch.where(c, x, y),
    "index_select": lambda x, i, a: x.index_select(a["dim"], i),
    "gather": lambda x, i, a: x.gather(a["dim"], i),
    "scatter": lambda x, i, s, a: x.scatter(a["dim"], i, s),
    "repeat_interleave": lambda x, a: x.repeat_interleave(a["repeats"], a["dim"]),
    "gelu": lambda x, a: torch.nn.functional.gelu(x, approximate=a["approximate"]),
    "clamp": lambda x, a: x.clamp(a.get("min"), a.get("max")),
    "leaky_relu": lambda x, a: aten.leaky_relu(x, a["negative_slope"]),
    "elu": lambda x, a: aten.elu(x, a["alpha"]),
    "prod": lambda x, a: x.prod(a["dims"][0], bool(a["keepdim"])),
    "argmax": lambda x, a: x.argmax(a["dim"], bool(a["keepdim"])),
    "max": lambda x, a: tuple(x.max(a["dim"], bool(a["keepdim"]))),
    "min": lambda x, a: tuple(x.min(a["dim"], bool(a["keepdim"]))),
    "cumsum": lambda x, a: x.cumsum(a["dim"]),
    "softmax": lambda x, a: x.softmax(a["dim"]),
    "log_softmax": lambda x, a: x.log_softmax(a["dim"]),
    "topk": lambda x, a: tuple(x.topk(a["k"], a["dim"], bool(a["largest"]))),
    "sort": lambda x, a: tuple(x.sort(dim=a["dim"], descending=bool(a["descending"]), stable=True)),
    "bmm": lambda x, y, a: x @ y,
    "softplus": lambda x, a: torch.nn.functional.softplus(x),
    "silu": lambda x, a: torch.nn.functional.silu(x),
} | {
    name: lambda x, a, name=name: getattr(torch, name)(x, dim=a["dims"], keepdim=bool(a["keepdim"]))
    for name in ("sum", "mean", "amax", "amin", "any", "all")
}  # fmt: skip


class Interpreter:
    """One sequence in progress. weights: one dense tensor for each entry of the program's weights table.

    delegates: blobs to the methods that they stand for
    """

    def __init__(self, planned: MemoryPlan, weights: list[Tensor], delegates: dict[bytes, LoweredMethod] | None = None):
        self.blobs = [delegate.blob for delegate in planned.program.delegates]
        self.delegates = delegates or {}
        self.methods = {method.name: method for method in planned.program.methods}
        self.plans = dict(zip(self.methods, planned.methods, strict=True))
        self.weights = weights
        self.state = ReferenceState()

    @torch.no_grad()
    def run(self, name: str, input_ids: Tensor, position: int) -> Tensor:
        """input_ids: int64 [1, T]. Returns: float32 [1, T or 1, vocab_size]"""
        method, num_tokens = self.methods[name], input_ids.shape[1]
        inputs = {"input_ids": input_ids, "position_ids": torch.arange(position, position + num_tokens)[None]}
        with self.state:
            values = [inputs[input_name] for input_name in method.input_names]
            return self._call(method, self.plans[name], values, num_tokens)[0]

    def _call(self, method: LoweredMethod, planned: MethodPlan, inputs: list[Tensor], num_tokens: int) -> list[Tensor]:
        memory = Memory(method, planned, num_tokens, self.weights)
        for index, value in zip(method.inputs, inputs, strict=True):
            memory.store(index, value)
        for instruction in method.instructions:
            self._execute(instruction, memory, num_tokens)
        return [memory.values[index].clone() for index in method.outputs]

    def _execute(self, instruction: Instruction, memory: Memory, num_tokens: int) -> None:
        arguments = [None if index < 0 else memory.values[index] for index in instruction.inputs]
        if instruction.op == "mote.delegate":
            assert all(argument.is_contiguous() for argument in arguments)
            part = self.delegates[self.blobs[evaluate(instruction, num_tokens)["delegate"]]]
            results = tuple(self._call(part, plan_method(part), arguments, num_tokens))
        else:
            output = memory.method.values[instruction.outputs[0]]
            result = call(instruction, arguments, evaluate(instruction, num_tokens), output, num_tokens)
            results = result if isinstance(result, tuple) else (result,)
        assert len(results) == len(instruction.outputs), instruction
        for index, tensor in zip(instruction.outputs, results, strict=True):
            memory.store(index, tensor, instruction)


def call(instruction: Instruction, arguments: list, attributes: dict, output, num_tokens: int):
    namespace, name = instruction.op.split(".")
    if namespace == "mote":
        # The reference keeps keys and values; in an arena their bytes are soon another value's.
        arguments = [None if x is None else x.clone(memory_format=torch.preserve_format) for x in arguments]
        return getattr(torch.ops.mote, name)(*arguments, **attributes)
    if name == "_to_copy":
        return arguments[0].to(output.dtype)
    if name == "full":
        return torch.full(attributes["size"], attributes["value"], dtype=output.dtype)
    if name == "arange":
        return torch.arange(attributes["start"], attributes["end"], attributes["step"])
    if name not in FUNCTIONS:
        assert not attributes, f"{instruction.op} has no attributes, but has {attributes}"
        assert len({x.dtype for x in arguments}) == 1, f"{instruction}: inputs of several dtypes"
        return getattr(torch, name)(*arguments)
    return FUNCTIONS[name](*arguments, attributes)


class Memory:
    """The values of one call, in arenas that start as garbage."""

    def __init__(self, method: LoweredMethod, plan: MethodPlan, num_tokens: int, weights: list[Tensor]):
        self.method, self.plan, self.num_tokens = method, plan, num_tokens
        sizes = {"per_token": plan.per_token_bytes * num_tokens, "fixed": plan.fixed_bytes}
        self.arenas = {name: torch.full((size,), 0xAB, dtype=torch.uint8) for name, size in sizes.items()}
        self.values: dict[int, Tensor] = {
            index: weights[value.weight] for index, value in enumerate(method.values) if value.kind == "weight"
        }

    def store(self, index: int, tensor: Tensor, instruction: Instruction | None = None) -> None:
        value = self.method.values[index]
        shape = [size.at(self.num_tokens) for size in value.shape]
        assert list(tensor.shape) == shape and tensor.dtype == value.dtype, (
            instruction,
            tensor.shape,
            shape,
            tensor.dtype,
        )
        if value.alias_of >= 0:
            assert value.alias_of < index and instruction.op.split(".")[1] in VIEWS
            base = self.values[value.alias_of]
            assert tensor.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
            self.values[index] = tensor
            return
        place = self.plan.placements[index]
        scale = self.num_tokens if place.arena == "per_token" else 1
        start, needed = place.offset * scale, tensor.numel() * tensor.element_size()
        assert needed <= place.bytes * scale
        stored = self.arenas[place.arena][start : start + needed].view(value.dtype).view(shape)
        stored.copy_(tensor)
        self.values[index] = stored
