"""Apple's package `coremltools`: everything that Mote uses of it, without its converters.

Nothing is imported before it is needed: without the package all of Mote but Core ML works.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import importlib.metadata
import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from llm_export.errors import ArgumentError, ProgramError

PACKAGE, VERSION = "coremltools", "9.0"
INSTALL = (
    "pip install 'mote-llm[coreml]', which there is for macOS and for Linux on x86-64, with Python up to 3.13"
)
MODEL, WEIGHTS = "Data/com.apple.CoreML/model.mlmodel", "Data/com.apple.CoreML/weights/weight.bin"
# It imports them where it finds them, for converters that are not used here; some take long, others fail.
OTHERS = ("torch", "executorch", "transformers", "tensorflow", "sklearn", "xgboost", "libsvm", "scipy")
SHARED_ELEMENTS = 10  # constants of so many are in the file of weights, others in the program
TYPES = {
    "float32": "fp32", "float16": "fp16", "int32": "int32", "bool": "bool", "int8": "int8", "uint8": "uint8",
    "int4": "int4",
}  # fmt: skip
UNARY = {
    "abs", "round", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "sigmoid", "silu", "relu",
}  # fmt: skip
BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "divide": "real_div", "pow": "pow", "maximum": "maximum",
    "minimum": "minimum", "modulo": "mod", "floor_divide": "floor_div", "equal": "equal", "not_equal": "not_equal",
    "greater": "greater", "and": "logical_and", "or": "logical_or", "xor": "logical_xor",
}  # fmt: skip
# Names of the two items of a package: others each time would make equal programs differ.
ITEMS = (
    ("8A6D0A5E-6D0B-4C53-9C1E-4D6F74650001", "model.mlmodel", "CoreML Model Specification"),
    ("8A6D0A5E-6D0B-4C53-9C1E-4D6F74650002", "weights", "CoreML Model Weights"),
)


def check_installed() -> None:
    """Errors: ArgumentError if the package is missing or of another version."""
    try:
        found = importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        raise ArgumentError(f"coreml: needs {PACKAGE} {VERSION}, which is not installed: {INSTALL}") from None
    if found != VERSION:
        raise ArgumentError(f"coreml: {PACKAGE} is {found}: must be {VERSION}: {INSTALL}")


def package() -> SimpleNamespace:
    check_installed()
    names = {
        "tools": "coremltools",
        "mil": "coremltools.converters.mil.mil",
        "states": "coremltools.converters.mil.mil.program",
        "backend": "coremltools.converters.mil.backend.mil.load",
        "program_proto": "coremltools.proto.MIL_pb2",
        "model_proto": "coremltools.proto.Model_pb2",
        "messages": "google.protobuf.message",
    }
    with _alone():
        return SimpleNamespace(**{name: importlib.import_module(module) for name, module in names.items()})


@contextmanager
def _alone() -> Iterator[None]:
    """Inside, the package finds none of the OTHERS, and says nothing of what it does not find."""
    logger = logging.getLogger(PACKAGE)
    level, kept = logger.level, {name: sys.modules.get(name) for name in OTHERS}
    try:
        logger.setLevel(logging.CRITICAL)
        sys.modules.update(dict.fromkeys(OTHERS))  # type: ignore[arg-type]  # None: an import fails
        yield
    finally:
        for name, module in kept.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
        logger.setLevel(level)


class PackageBuilder:
    """Builds the functions of one package, which share what is `stored`; the author of an Emitter."""

    def __init__(self) -> None:
        self._coreml = package()
        self._builder, self._types = self._coreml.mil.Builder, self._coreml.mil.types
        self._program = self._coreml.mil.Program()
        self._data: dict[str, np.ndarray] = {}
        self._constants: dict[str, Any] = {}  # of the function that is being built
        self._states: dict[str, Any] = {}
        self._count = 0

    def building(self) -> AbstractContextManager:
        return nullcontext()  # each function is whole by itself

    def function(
        self,
        name: str,
        inputs: Sequence[tuple[str, Sequence[int], str]],
        states: Sequence[tuple[str, Sequence[int], str]],
        body: Callable[[list[Any]], tuple[Mapping[str, Any], Mapping[str, Any]]],
    ) -> None:
        """Adds a function. body: of the handles of inputs and of what states hold; gives outputs. States are `kept`"""
        mil = self._coreml.mil
        holders = {each: mil.Builder.placeholder(shape, self._type(dtype)) for each, shape, dtype in inputs}
        holders |= {
            each: mil.Builder.state_tensor_placeholder(shape, self._type(dtype)) for each, shape, dtype in states
        }
        self._constants, self._count = {}, 0
        mil.Builder.name_count.clear()  # it numbers operands through the whole process
        with mil.Function(holders, opset_version=self._coreml.tools.target.iOS18) as function:
            self._states = {each: function.inputs[each] for each, _, _ in states}
            handles = [function.inputs[each] for each, _, _ in inputs]
            handles += [self._add("read_state", input=state) for state in self._states.values()]
            outputs, _ = body(handles)
            function.set_outputs([self._builder.identity(x=value, name=each) for each, value in outputs.items()])
        self._program.add_function(name, function)

    def save(self, folder: Path) -> None:
        """Writes the package, whose bytes are the same for the same functions. folder: does not exist yet"""
        self._program.export_as_multifunction = True
        names = list(self._program.functions)
        self._program.default_function_name = "decode" if "decode" in names else names[0]
        weights = (folder / WEIGHTS).parent
        weights.mkdir(parents=True)
        version = self._coreml.tools.target.iOS18.value
        model = self._coreml.backend.load(self._program, str(weights), specification_version=version)
        (folder / WEIGHTS).touch()  # where there are none
        (folder / MODEL).write_bytes(model.SerializeToString(deterministic=True))
        (folder / "Manifest.json").write_text(json.dumps(_manifest(), indent=2))
        del model
        self._program, self._data, self._constants, self._states = None, {}, {}, {}
        gc.collect()  # of a program that refers to itself and holds all weights

    # The author of an Emitter.

    def op(self, name: str, operands: Sequence[Any], shape: Sequence[int], dtype: str, **parameters: Any) -> Any:
        """Errors: ProgramError if the package makes something else of it, or nothing: then a lowering is wrong."""
        try:
            made = self._made(name, operands, shape, dtype, **parameters)
        except (ValueError, TypeError, NotImplementedError, AttributeError) as error:
            made, why = None, str(error)
        else:
            why = f"gives {tuple(made.shape)} of {made.dtype.__name__}"
        if made is None or tuple(made.shape) != tuple(shape) or made.dtype != self._type(dtype):
            types = ", ".join(f"{tuple(x.shape)} of {x.dtype.__name__}" for x in operands)
            raise ProgramError(f"coreml: {name} of {types} with {parameters}: {why}, not {tuple(shape)} of {dtype}")
        return made

    def number(self, value: np.ndarray) -> Any:
        digest = hashlib.sha256(value.tobytes()).hexdigest()[:16]
        return self.stored(f"table.{value.dtype}.{value.shape}.{digest}", lambda: value, value.shape, str(value.dtype))

    def stored(self, name: str, data: Callable[[], np.ndarray], shape: Sequence[int], dtype: str) -> Any:
        if name not in self._constants:
            if name not in self._data:
                kind = self._coreml.mil.types.nptype_from_builtin(self._type(dtype))
                array = np.ascontiguousarray(data())
                self._data[name] = array.reshape(-1).view(kind).reshape(tuple(shape))
            value = self._data[name]
            made = self._builder.const(val=value if value.ndim else value[()], name=self._name("const"))
            made.op.weight_id = name
            self._constants[name] = made
        return self._constants[name]

    def kept(self, state: str, value: Any) -> Any:
        """What a state is from here on. A second `read_state` might be merged with the first one."""
        return self._add("coreml_update_state", state=self._states[state], value=value)

    def _made(self, name: str, operands: Sequence[Any], shape: Sequence[int], dtype: str, **parameters: Any) -> Any:
        if name in UNARY:
            return self._add(name, x=operands[0])
        if name in BINARY:
            return self._binary(BINARY[name], *operands)
        if name.startswith("reduce_"):
            word = {"product": "prod"}.get(name.removeprefix("reduce_"), name.removeprefix("reduce_"))
            return self._add(f"reduce_{word}", x=operands[0], axes=parameters["axes"], keep_dims=True)
        return getattr(self, f"_{name}")(operands, shape, dtype, **parameters)

    def _add(self, word: str, **inputs: Any) -> Any:
        return getattr(self._builder, word)(**inputs, name=self._name(word))

    def _name(self, word: str) -> str:
        self._count += 1
        return f"{word}_{self._count}"

    def _type(self, dtype: str) -> Any:
        return getattr(self._types, TYPES[dtype])

    def _binary(self, word: str, x: Any, y: Any) -> Any:
        if x.shape or y.shape:
            return self._add(word, x=x, y=y)
        # Of two numbers that are constants the package makes one that it does not take itself.
        x, y = (self._add("expand_dims", x=each, axes=[0]) for each in (x, y))
        return self._add("squeeze", x=self._add(word, x=x, y=y))

    def _not(self, operands, shape, dtype) -> Any:
        return self._add("logical_not", x=operands[0])

    def _cast(self, operands, shape, dtype) -> Any:
        return self._add("cast", x=operands[0], dtype=TYPES[dtype])

    def _where(self, operands, shape, dtype) -> Any:
        condition, x, y = operands
        return self._add("select", cond=condition, a=x, b=y)

    def _reshape(self, operands, shape, dtype) -> Any:
        if not shape:
            return self._add("squeeze", x=operands[0])
        return self._add("reshape", x=operands[0], shape=list(shape))

    def _transpose(self, operands, shape, dtype, order) -> Any:
        return self._add("transpose", x=operands[0], perm=order)

    def _tile(self, operands, shape, dtype, repeats) -> Any:
        return self._add("tile", x=operands[0], reps=repeats)

    def _slice(self, operands, shape, dtype, starts, ends, steps) -> Any:
        return self._add("slice_by_index", x=operands[0], begin=starts, end=ends, stride=steps)

    def _slice_update(self, operands, shape, dtype) -> Any:
        x, starts, ends, update = operands
        return self._add("slice_update", x=x, update=update, begin=starts, end=ends)

    def _concat(self, operands, shape, dtype, axis) -> Any:
        return self._add("concat", values=list(operands), axis=axis)

    def _rows(self, operands, shape, dtype) -> Any:
        table, indices = operands
        return self._add("gather", x=table, indices=indices, axis=0)

    def _gather_along_axis(self, operands, shape, dtype, axis) -> Any:
        x, indices = operands
        return self._add("gather_along_axis", x=x, indices=indices, axis=axis)

    def _scatter_along_axis(self, operands, shape, dtype, axis, mode) -> Any:
        x, indices, updates = operands
        return self._add("scatter_along_axis", data=x, indices=indices, updates=updates, axis=axis, mode=mode)

    def _softmax(self, operands, shape, dtype, axis) -> Any:
        return self._add("softmax", x=operands[0], axis=axis)

    def _scan(self, operands, shape, dtype, axis) -> Any:
        return self._add("cumsum", x=operands[0], axis=axis)

    def _argsort(self, operands, shape, dtype, axis, descending) -> Any:
        return self._add("argsort", x=operands[0], axis=axis, ascending=not descending)

    def _batch_matmul(self, operands, shape, dtype, transpose_y=False) -> Any:
        x, y = operands
        return self._add("matmul", x=x, y=y, transpose_y=transpose_y)

    def _linear(self, operands, shape, dtype) -> Any:
        x, weight = operands
        return self._add("linear", x=x, weight=weight)

    def _dequantize(self, operands, shape, dtype) -> Any:
        codes, scales = operands
        return self._add("constexpr_blockwise_shift_scale", data=codes, scale=scales)


def _manifest() -> dict:
    entries = {
        identifier: {
            "author": "com.apple.CoreML",
            "description": description,
            "name": name,
            "path": f"com.apple.CoreML/{name}",
        }
        for identifier, name, description in ITEMS
    }
    return {"fileFormatVersion": "1.0.0", "itemInfoEntries": entries, "rootModelIdentifier": ITEMS[0][0]}
