"""A saved package as numpy computes it: for checks, on machines without Core ML."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from llm_export.errors import FileError

from .arithmetic import COMPUTE
from .vendor import MODEL, WEIGHTS, package

RECORD = struct.Struct("<IIQQ")  # of a blob: mark, type, bytes, offset
MARK = 0xDEADBEEF
INT4_BYTES = 2  # codes in one
# What numpy and containers say of a program that contradicts itself.
UNREADABLE = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError, ValueError)


class Interpreter:
    """Every output of an op is held against the size that the file says, and rounded to the dtype that it says."""

    def __init__(self, folder: Path):
        coreml = package()
        self._folder, self._proto = folder, coreml.program_proto
        model = coreml.model_proto.Model()
        try:
            model.ParseFromString((folder / MODEL).read_bytes())
        except coreml.messages.DecodeError as error:
            raise FileError(f"{folder}: {MODEL} is no model: {error}") from error
        self._functions = model.mlProgram.functions
        weights = folder / WEIGHTS
        self._blobs = np.memmap(weights, np.uint8, "r") if weights.stat().st_size else np.empty(0, np.uint8)
        self._files: dict[tuple[int, int], np.ndarray] = {}
        self._constants: dict[str, dict[str, Any]] = {}  # by functions and names; weights are dequantized once
        proto = self._proto
        self._dtypes = {
            proto.FLOAT32: np.float32, proto.FLOAT16: np.float16, proto.INT32: np.int32, proto.INT16: np.int16,
            proto.INT8: np.int8, proto.UINT8: np.uint8, proto.UINT16: np.uint16, proto.BOOL: np.bool_,
        }  # fmt: skip

    def array(self, data: np.ndarray) -> np.ndarray:
        """Memory for a state, which calls change in place."""
        return data

    def call(
        self, name: str, inputs: Mapping[str, np.ndarray], states: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Errors: FileError if the package cannot be computed."""
        try:
            return self._called(name, inputs, states)
        except UNREADABLE as error:
            raise FileError(f"{self._folder}: {name} cannot be computed: {error}") from error

    def _called(
        self, name: str, inputs: Mapping[str, np.ndarray], states: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        function = self._functions[name]
        block = function.block_specializations[function.opset]
        constants = self._constants.setdefault(name, {})
        values: dict[str, Any] = {}
        for given in function.inputs:
            kind = given.type.WhichOneof("type")
            if kind == "stateType":
                values[given.name] = self._checked(states[given.name], given.type.stateType.wrappedType, given.name)
            else:
                values[given.name] = self._checked(inputs[given.name], given.type, given.name)
        values |= constants
        for op in block.operations:
            if op.type == "write_state":
                values[op.inputs["input"].arguments[0].name][...] = self._argument(op.inputs["data"], values)
            elif op.outputs[0].name not in constants:
                made = self._run(op, values)
                values |= made
                if op.type == "const" or op.type.startswith("constexpr_"):
                    constants |= made
        return {output: values[output] for output in block.outputs}

    def close(self) -> None:
        self._constants.clear()
        self._files.clear()

    def _run(self, op: Any, values: Mapping[str, Any]) -> dict[str, Any]:
        if op.type == "const":
            found = self._value(op.attributes["val"])
            return {op.outputs[0].name: self._checked(found, op.outputs[0].type, op.outputs[0].name)}
        if op.type not in COMPUTE:
            raise FileError(f"{self._folder}: has the op {op.type}, which is not known here")
        operands = {name: self._argument(argument, values) for name, argument in op.inputs.items()}
        with np.errstate(all="ignore"):
            found = COMPUTE[op.type](**operands)
        (output,) = op.outputs
        return {output.name: self._checked(found, output.type, f"{op.type} {output.name}")}

    def _checked(self, found: Any, kind: Any, name: str) -> Any:
        tensor = kind.tensorType
        if tensor.dataType not in self._dtypes:
            return found
        found, shape = np.asarray(found), tuple(dimension.constant.size for dimension in tensor.dimensions)
        if found.shape != shape:
            raise FileError(f"{self._folder}: {name} has the sizes {list(found.shape)}: must be {list(shape)}")
        return found.astype(self._dtypes[tensor.dataType], copy=False)

    def _argument(self, argument: Any, values: Mapping[str, Any]) -> Any:
        found = [
            values[each.name] if each.WhichOneof("binding") == "name" else self._value(each.value)
            for each in argument.arguments
        ]
        return found[0] if len(found) == 1 else found

    def _value(self, value: Any) -> Any:
        kind = value.type.tensorType
        shape = tuple(dimension.constant.size for dimension in kind.dimensions)
        if value.WhichOneof("value") == "blobFileValue":
            return self._stored(value.blobFileValue.offset, kind.dataType, shape)
        tensor = value.immediateValue.tensor
        field = tensor.WhichOneof("value")
        numbers = getattr(tensor, field).values
        if field == "strings":
            return numbers[0]
        dtype = self._dtypes[kind.dataType]
        array = np.frombuffer(numbers, dtype) if field == "bytes" else np.array(list(numbers), dtype)
        return array.reshape(shape)

    def _stored(self, offset: int, kind: int, shape: tuple[int, ...]) -> np.ndarray:
        """Errors: FileError if there is no such blob."""
        if (offset, kind) in self._files:
            return self._files[offset, kind]
        head = bytes(self._blobs[offset : offset + RECORD.size])
        mark, _, num_bytes, start = RECORD.unpack(head) if len(head) == RECORD.size else (0, 0, 0, 0)
        is_narrow, count = kind == self._proto.INT4, math.prod(shape)
        size = -(-count // INT4_BYTES) if is_narrow else count * np.dtype(self._dtypes[kind]).itemsize
        if mark != MARK or num_bytes != size or start + size > self._blobs.size:
            raise FileError(f"{self._folder}: {WEIGHTS} has no blob of {size} bytes at {offset}")
        data = self._blobs[start : start + size]
        found = unpacked(data)[:count] if is_narrow else data.view(self._dtypes[kind])
        return self._files.setdefault((offset, kind), found.reshape(shape))


def unpacked(data: np.ndarray) -> np.ndarray:
    """int4, two a byte, the first in the low half."""
    return np.stack([(data << 4).view(np.int8) >> 4, data.view(np.int8) >> 4], -1).reshape(-1)
