"""The `mote::` ops: one instruction each, attributes as in their torch schema."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from llm_export.instructions import dims
from llm_export.instructions.builder import MethodBuilder, attribute, canonical_dtype
from llm_export.instructions.registry import bind_arguments
from llm_export.program.instructions import Attribute, Value


def is_language_op(target: Any) -> bool:
    return isinstance(target, torch._ops.OpOverload) and target.namespace == "mote"


def lower_language_op(b: MethodBuilder, node: Node) -> int | list[int]:
    """Tensors become inputs in the order of the schema; everything else becomes an attribute of its declared type."""
    inputs: list[int] = []
    attributes: dict[str, Attribute] = {}
    bound = bind_arguments(node)
    for argument in node.target._schema.arguments:
        value, kind = bound[argument.name], str(argument.type)
        if "Tensor" in kind:
            inputs.append(b.optional_tensor(value))
        elif value is not None:
            attributes[argument.name] = attribute(float(value) if kind == "float" else value)
    result = node.meta["val"]
    outputs = [
        b.add_value(Value("activation", canonical_dtype(tensor.dtype), dims.shape_of(tensor)))
        for tensor in (result if isinstance(result, (list, tuple)) else [result])
    ]
    b.append("mote." + node.target._schema.name.removeprefix("mote::"), inputs, outputs, attributes)
    return outputs if isinstance(result, (list, tuple)) else outputs[0]
