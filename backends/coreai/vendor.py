"""Apple's package `coreai-core`: everything that Mote uses of it, most of which has no promise of staying as it is.

Nothing is imported before it is needed: without the package all of Mote but Core AI works.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.metadata
import json
import math
import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from llm_export.errors import ArgumentError, ProgramError

PACKAGE, VERSION = "coreai-core", "1.0.0b3"
INSTALL = (
    "pip install 'mote-llm[coreai]', which there is for macOS 26 on Apple silicon and for Linux on x86-64 with glibc "
    "2.34 or later"
)
PROGRAM = "main.mlirb"  # holds all of an asset, weights included
PLAIN = ("float32", "float16", "int32", "int8")  # dtypes that numpy has too
INLINE_ELEMENTS = 16  # constants with more of them get a name, or their bytes would differ from run to run
# Files below 16 KB do not load where resources ask for more.
ALIGNMENT = 16
CREATED = "20260101T000000Z"  # in every asset, so that equal programs have equal bytes
BINARY = {
    "add", "sub", "mul", "divide", "pow", "maximum", "minimum", "modulo", "floor_divide", "equal", "not_equal",
    "greater", "and", "or", "xor", "where",
}  # fmt: skip
UNARY = {
    "abs": "abs_", "not": "not_", "round": "round_", "exp": "exp", "log": "log", "sqrt": "sqrt", "rsqrt": "rsqrt",
    "sin": "sin", "cos": "cos", "tanh": "tanh", "erf": "erf", "sigmoid": "sigmoid", "silu": "silu", "relu": "relu",
}  # fmt: skip


def check_installed() -> None:
    """Errors: ArgumentError if the package is missing or of another version."""
    try:
        found = importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        raise ArgumentError(f"coreai: needs {PACKAGE} {VERSION}, which is not installed: {INSTALL}") from None
    if found != VERSION:
        raise ArgumentError(f"coreai: {PACKAGE} is {found}: must be {VERSION}: {INSTALL}")


def _package() -> SimpleNamespace:
    check_installed()
    names = {
        "au": "coreai.authoring",
        "builder": "coreai.authoring.graph_builder",
        "constants": "coreai.authoring.constant",
        "ir": "coreai._compiler.ir",
        "ops": "coreai._compiler.dialects._coreai_ops_gen",
    }
    return SimpleNamespace(**{name: importlib.import_module(module) for name, module in names.items()})


class AssetBuilder:
    """Builds the functions of one asset, which share what is `stored`; the author of an Emitter."""

    def __init__(self):
        self._coreai = _package()
        self._module = self._coreai.au.Module.create()
        self._resources: dict[str, Any] = {}
        self._composites: dict[tuple, Any] = {}

    @contextmanager
    def building(self) -> Iterator[AssetBuilder]:
        """Functions are added in this block; at its end all of them are verified and rewritten."""
        with self._module:
            yield self

    def function(
        self,
        name: str,
        inputs: Sequence[tuple[str, Sequence[int], str]],
        states: Sequence[tuple[str, Sequence[int], str]],
        body: Callable[[list[Any]], tuple[Mapping[str, Any], Mapping[str, Any]]],
    ) -> None:
        """Adds a function. body: of the handles of inputs and states; gives outputs, and what each state becomes."""
        ir = self._coreai.ir
        arguments = [*inputs, *states]
        types = [self._type(shape, dtype) for _, shape, dtype in arguments]
        graph = self._coreai.builder.GraphOp(name, types, [], input_names=[argument[0] for argument in arguments])
        with graph.block:
            outputs, written = body([self._coreai.au.Value._from_mlir(argument) for argument in graph.arguments])
        results = OrderedDict((each, value._to_mlir()) for each, value in outputs.items())
        results |= {f"{state}_next": value._to_mlir() for state, value in written.items()}
        graph.set_outputs_spec_from_dict(results)
        attributes = [{each.name: each.attr for each in argument} for argument in graph.arg_attrs]
        for position, (state, _, _) in enumerate(states, len(inputs)):
            attributes[position]["MutableBuffers.buffer_mutation"] = ir.StringAttr.get(f"{state}_next")
        graph.arg_attrs = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in attributes])

    def save(self, folder: Path) -> None:
        """Writes the asset, whose bytes are the same for the same functions."""
        self._coreai.au.AIProgram(self._module).save_asset(folder)
        metadata = json.loads((folder / "metadata.json").read_text())
        metadata["creationDate"] = CREATED
        (folder / "metadata.json").write_text(json.dumps(metadata))

    # The author of an Emitter.

    def op(self, name: str, operands: Sequence[Any], shape: Sequence[int], dtype: str, **parameters: Any) -> Any:
        """Errors: ProgramError if the package makes something else of it, or nothing: then a lowering is wrong."""
        try:
            made = self._made(name, operands, shape, dtype, **parameters)
        except ValueError as error:
            made, why = None, str(error)
        else:
            why = f"gives {made._to_mlir().type}"
        if made is None or made._to_mlir().type != self._type(shape, dtype):
            types = ", ".join(str(operand._to_mlir().type) for operand in operands)
            raise ProgramError(f"coreai: {name} of {types} with {parameters}: {why}, not {self._type(shape, dtype)}")
        return made

    def _made(self, name: str, operands: Sequence[Any], shape: Sequence[int], dtype: str, **parameters: Any) -> Any:
        au = self._coreai.au
        if name in UNARY:
            return getattr(au, UNARY[name])(operands[0])
        if name in BINARY:
            return getattr(au, f"broadcasting_{name}")(*operands)
        if name == "gelu":
            return au.gelu(operands[0], **parameters)
        if name.startswith("reduce_"):
            return getattr(au, name)(operands[0], self._ints(*parameters["axes"]))
        return getattr(self, f"_{name}")(operands, shape, dtype, **parameters)

    def number(self, value: np.ndarray) -> Any:
        if value.size <= INLINE_ELEMENTS:
            return self._coreai.constants.constant(value)
        digest = hashlib.sha256(value.tobytes()).hexdigest()[:16]
        name = f"table.{value.dtype}.{'x'.join(map(str, value.shape))}.{digest}"
        return self.stored(name, lambda: value, value.shape, str(value.dtype))

    def stored(self, name: str, data: Callable[[], np.ndarray], shape: Sequence[int], dtype: str) -> Any:
        if math.prod(shape) <= INLINE_ELEMENTS and dtype in PLAIN:
            return self._coreai.constants.constant(data().reshape(-1).view(dtype).reshape(shape))
        if name not in self._resources:
            self._resources[name] = self._coreai.ir.DenseResourceElementsAttr.get_from_buffer(
                np.ascontiguousarray(data()), name, self._type(shape, dtype), alignment=ALIGNMENT
            )
        return self._constant(self._resources[name])

    def splat(self, value: float, shape: Sequence[int], dtype: str) -> Any:
        ir, kind = self._coreai.ir, self._type(shape, dtype)
        is_integer = dtype.startswith("int")
        element = ir.IntegerAttr.get(kind.element_type, int(value)) if is_integer else None
        element = element or ir.FloatAttr.get(kind.element_type, float(value))
        return self._constant(ir.DenseElementsAttr.get_splat(kind, element))

    def composite(
        self, key: tuple, operands: Mapping[str, Any], attributes: Mapping[str, str], body: Callable[..., Any]
    ) -> Any:
        au, ir = self._coreai.au, self._coreai.ir
        handles = [operand._to_mlir() for operand in operands.values()]
        if key not in self._composites:
            graph = self._coreai.builder.GraphOp(
                f"{key[0]}_{len(self._composites)}",
                [handle.type for handle in handles],
                [],
                input_names=list(operands),
                private=True,
                no_inline=True,
                composite_decl=ir.Attribute.parse(_declaration(key[0], operands, attributes)),
                ip=ir.InsertionPoint.at_block_begin(self._module._mlir_module.body),
            )
            with graph.block:
                result = body(*(au.Value._from_mlir(argument) for argument in graph.arguments))
            graph.set_outputs_spec_from_dict(OrderedDict(output=result._to_mlir()))
            self._composites[key] = graph
        return au.Value._from_mlir(self._composites[key](*handles)[0])

    def _type(self, shape: Sequence[int], dtype: str) -> Any:
        au, ir = self._coreai.au, self._coreai.ir
        kind = getattr(au, "bool_" if dtype == "bool" else dtype)
        return ir.RankedTensorType.get(list(shape), kind._to_mlir())

    def _constant(self, attribute: Any) -> Any:
        return self._coreai.au.Value._from_mlir(self._coreai.ops.ConstantOp(value=attribute).result)

    def _ints(self, *values: int, dtype: Any = np.int32) -> Any:
        return self._coreai.constants.constant(np.array(values, dtype))

    def _scalar(self, value: int | bool, dtype: Any = np.int32) -> Any:
        return self._coreai.constants.constant(np.array(value, dtype))

    def _cast(self, operands: Sequence[Any], shape: Sequence[int], dtype: str) -> Any:
        return self._coreai.au.cast(operands[0], np.dtype(dtype).type)

    def _reshape(self, operands: Sequence[Any], shape: Sequence[int], dtype: str) -> Any:
        return self._coreai.au.reshape(operands[0], self._ints(*shape))

    def _transpose(self, operands: Sequence[Any], shape: Sequence[int], dtype: str, order: Sequence[int]) -> Any:
        return self._coreai.au.transpose(operands[0], self._ints(*order, dtype=np.uint32))

    def _tile(self, operands: Sequence[Any], shape: Sequence[int], dtype: str, repeats: Sequence[int]) -> Any:
        # Of broadcast_to, whose shape is a constant as well, the package knows only the rank.
        return self._coreai.au.tile(operands[0], self._ints(*repeats, dtype=np.uint32))

    def _slice(self, operands, shape, dtype, starts, ends, steps) -> Any:
        return self._coreai.au.slice_(operands[0], self._ints(*starts), self._ints(*ends), self._ints(*steps))

    def _slice_update(self, operands: Sequence[Any], shape: Sequence[int], dtype: str) -> Any:
        x, starts, ends, update = operands
        return self._coreai.au.slice_update(x, starts, ends, self._ints(*[1] * len(shape)), update)

    def _concat(self, operands: Sequence[Any], shape: Sequence[int], dtype: str, axis: int) -> Any:
        return self._coreai.au.concat(self._scalar(axis), list(operands))

    def _rows(self, operands: Sequence[Any], shape: Sequence[int], dtype: str) -> Any:
        table, indices = operands
        return self._coreai.au.gather_nd(table, self._coreai.au.reshape(indices, self._ints(shape[0], 1)))

    def _gather_along_axis(self, operands: Sequence[Any], shape: Sequence[int], dtype: str, axis: int) -> Any:
        return self._coreai.au.gather_along_axis(*operands, self._scalar(axis))

    def _scatter_along_axis(self, operands, shape, dtype, axis: int, mode: str) -> Any:
        au = self._coreai.au
        output = au.TensorType(tuple(shape), np.dtype(dtype).type)
        return au.scatter_along_axis(output, *operands, self._scalar(axis), scatter_mode=mode)

    def _softmax(self, operands: Sequence[Any], shape: Sequence[int], dtype: str, axis: int) -> Any:
        return self._coreai.au.softmax(operands[0], self._scalar(axis))

    def _scan(self, operands: Sequence[Any], shape: Sequence[int], dtype: str, axis: int) -> Any:
        is_reversed = self._scalar(False, np.bool_)
        return self._coreai.au.scan(operands[0], self._scalar(axis, np.uint32), is_reversed, combiner="sum")

    def _argsort(self, operands, shape, dtype, axis: int, descending: bool) -> Any:
        flags = (self._scalar(flag, np.bool_) for flag in (descending, True))
        found = self._coreai.au.argsort(operands[0], self._scalar(axis), *flags)
        return self._coreai.au.cast(found, np.dtype(dtype).type)

    def _batch_matmul(self, operands: Sequence[Any], shape: Sequence[int], dtype: str) -> Any:
        return self._coreai.au.broadcasting_batch_matmul(*operands)

    def _conv(self, operands: Sequence[Any], shape: Sequence[int], dtype: str) -> Any:
        ones = self._ints(1, 1, dtype=np.uint32)
        return self._coreai.au.conv2d(*operands, ones, ones, self._scalar(1, np.uint32))

    def _blockwise_shift_scale(self, operands: Sequence[Any], shape: Sequence[int], dtype: str) -> Any:
        return self._coreai.au.blockwise_shift_scale(*operands)


def _declaration(name: str, operands: Mapping[str, Any], attributes: Mapping[str, str]) -> str:
    names = ", ".join(f'"{each}"' for each in operands)
    values = ", ".join(f"{each} = {value}" for each, value in {**attributes, "version": "1 : si64"}.items())
    return (
        f'#coreai.composite_declaration<"{name}" = {{input_names = [{names}], output_names = ["output"], '
        f"op_attrs = {{{values}}}}}>"
    )


@contextmanager
def _without_prints() -> Iterator[None]:
    """Inside, what the package's libraries print goes nowhere: they say which functions they load."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    kept = [os.dup(descriptor) for descriptor in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for descriptor in (1, 2):
            os.dup2(nowhere, descriptor)
        yield
    finally:
        for descriptor, old in zip((1, 2), kept, strict=True):
            os.dup2(old, descriptor)
            os.close(old)
        os.close(nowhere)


class Interpreter:
    """An asset as Apple's interpreter runs it on this machine's CPU, slowly: every call dequantizes every weight."""

    def __init__(self, folder: Path):
        check_installed()
        self._runtime = importlib.import_module("coreai.runtime")
        self._loop = asyncio.new_event_loop()
        asset = importlib.import_module("coreai.authoring").AIModelAsset.load(folder)
        self._executable = asset.executable()
        self._model = self._loop.run_until_complete(self._executable.__aenter__())
        self._functions: dict[str, Any] = {}

    def array(self, data: np.ndarray) -> Any:
        """Memory for a state, which calls change in place."""
        return self._runtime.NDArray(data)

    def call(self, name: str, inputs: Mapping[str, np.ndarray], states: Mapping[str, Any]) -> dict[str, np.ndarray]:
        if name not in self._functions:
            with _without_prints():
                self._functions[name] = self._model.load_function(name)
        given = {each: self._runtime.NDArray(np.ascontiguousarray(value)) for each, value in inputs.items()}
        found = self._loop.run_until_complete(self._functions[name](given, dict(states)))
        return {each: np.array(value.numpy()) for each, value in found.items()}

    def close(self) -> None:
        if not self._loop.is_closed():
            self._functions.clear()
            self._loop.run_until_complete(self._executable.__aexit__(None, None, None))
            self._loop.close()
