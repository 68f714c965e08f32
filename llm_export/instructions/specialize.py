"""Fixes the number of tokens of a lowered method."""

from __future__ import annotations

from dataclasses import replace

from llm_export.program.instructions import Attribute, Dim, Instruction, LoweredMethod

# Ops that return their input where the sizes are equal.
SAME_WHEN_EQUAL = {"aten.view", "aten.expand", "aten.slice"}


def specialize(method: LoweredMethod, name: str, num_tokens: int) -> LoweredMethod:
    """Returns the method for exactly num_tokens tokens; views that then change nothing are left out."""

    def fixed(dim: Dim) -> Dim:
        return Dim(0, dim.at(num_tokens))

    def attribute(value: Attribute) -> Attribute:
        return tuple(fixed(dim) for dim in value) if isinstance(value, tuple) else value

    values = [replace(value, shape=tuple(fixed(size) for size in value.shape)) for value in method.values]
    same: dict[int, int] = {}
    instructions = []
    for instruction in method.instructions:
        inputs = [same.get(i, i) for i in instruction.inputs]
        outputs = instruction.outputs
        if instruction.op in SAME_WHEN_EQUAL and values[inputs[0]].shape == values[outputs[0]].shape:
            same[outputs[0]] = inputs[0]
            continue
        attributes = {key: attribute(value) for key, value in instruction.attributes.items()}
        instructions.append(Instruction(instruction.op, inputs, list(outputs), attributes, instruction.origin))
    for value in values:
        value.alias_of = same.get(value.alias_of, value.alias_of)
    outputs = [same.get(i, i) for i in method.outputs]
    result = LoweredMethod(
        name, values, list(method.inputs), list(method.input_names), outputs, instructions, num_tokens, num_tokens
    )
    return drop_unused_values(result)


def drop_unused_values(method: LoweredMethod) -> LoweredMethod:
    """Renumbers values so that only those that an instruction, an input or an output names remain."""
    used = set(method.inputs) | set(method.outputs)
    for instruction in method.instructions:
        used.update(i for i in (*instruction.inputs, *instruction.outputs) if i >= 0)
    kept = sorted(used)
    number = {old: new for new, old in enumerate(kept)} | {-1: -1}
    values = [replace(method.values[i], alias_of=number[method.values[i].alias_of]) for i in kept]
    instructions = [
        replace(item, inputs=[number[i] for i in item.inputs], outputs=[number[i] for i in item.outputs])
        for item in method.instructions
    ]
    return replace(
        method, values=values, instructions=instructions,
        inputs=[number[i] for i in method.inputs], outputs=[number[i] for i in method.outputs],
    )  # fmt: skip
