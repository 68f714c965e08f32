"""A method as a file describes it: who makes a value, who reads it, and which weights are read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from llm_runner.errors import ArgumentError

DELEGATE = "mote.delegate"


@dataclass(frozen=True)
class Instruction:
    index: int
    op: str
    origin: str  # module path in the Hugging Face model
    runs_on: str | None  # None: a view, which nothing runs
    inputs: tuple[int, ...]  # values; -1: absent
    outputs: tuple[int, ...]
    shapes: tuple[tuple[str, ...], ...]  # of the outputs; a size is "7", "T" or "2*T+1"
    weights: tuple[tuple[str, ...], ...]  # names in the Hugging Face state dict; several where they became one
    weight_inputs: tuple[int, ...]  # places in `inputs` of the weights
    attributes: str  # as JSON

    @property
    def is_view(self) -> bool:
        return self.runs_on is None

    @property
    def key(self) -> tuple:
        """What two files call the same: op, module and shapes."""
        return self.op, self.origin, self.shapes

    @property
    def name(self) -> str:
        return f"{self.op} {self.place}"

    @property
    def place(self) -> str:
        """The module, or the one inside of it whose weight is read: "model.layers.0.mlp.{gate_proj+up_proj}"."""
        modules = [name.rpartition(".")[0] for name in self.weights[0]] if self.weights else []
        if not all(self._holds(module) for module in modules) or not modules:
            return self.origin or "the model"
        above = {module.rpartition(".")[0] for module in modules}
        if len(modules) == 1 or len(above) > 1:
            return "+".join(modules)
        return f"{above.pop()}.{{{'+'.join(module.rpartition('.')[2] for module in modules)}}}"

    def _holds(self, module: str) -> bool:
        return (
            not self.origin
            or module == self.origin
            or module.startswith(self.origin + ".")
            or (len(self.weights[0]) > 1 and self.origin.rpartition(".")[0] == module.rpartition(".")[0])
        )


@dataclass(frozen=True)
class Method:
    """place: in `Model.describe()["methods"]`   outputs: values"""

    place: int
    name: str
    target: str
    instructions: tuple[Instruction, ...]
    outputs: tuple[int, ...]

    @cached_property
    def producers(self) -> dict[int, Instruction]:
        """The instruction that makes a value; inputs of the method and weights have none."""
        return {value: each for each in self.instructions for value in each.outputs}

    def maker(self, value: int) -> Instruction:
        """The instruction that computes a value, behind all views."""
        each = self.producers[value]
        while each.is_view and each.inputs[0] in self.producers:
            each = self.producers[each.inputs[0]]
        return each

    def computed(self) -> Iterator[Instruction]:
        """The instructions that are no views."""
        return (each for each in self.instructions if not each.is_view)


def method_of(about: Mapping[str, Any], name: str) -> Method | None:
    """Returns the method of the target that runs, for calls of any length; None: it has fixed lengths only.

    about: `Model.describe()`
    Errors: ArgumentError if the target has no such method
    """
    found = [
        (place, method)
        for place, method in enumerate(about["methods"])
        if method["name"] == name and method["target"] == about["target"]
    ]
    if not found:
        raise ArgumentError(f"{about['file']}: {about['target']} has no method '{name}'")
    for place, method in found:
        if name == "decode" or method["min_tokens"] < method["max_tokens"]:
            return _method(about, place, method)
    return None


def _method(about: Mapping[str, Any], place: int, method: Mapping[str, Any]) -> Method:
    # Whether a weight has its factor in it depends on how it is stored.
    parts = [tensor["name"].split("+") for tensor in about["weights"]["tensors"]]
    names = [tuple(part.partition("*")[0] for part in each) for each in parts]
    instructions = tuple(
        Instruction(
            index,
            each["op"],
            each["origin"],
            each["runs_on"],
            tuple(each["inputs"]),
            tuple(output["value"] for output in each["outputs"]),
            tuple(tuple(output["shape"]) for output in each["outputs"]),
            tuple(names[weight["tensor"]] for weight in each["weights"]),
            tuple(weight["input"] for weight in each["weights"]),
            json.dumps(each["attributes"]),
        )
        for index, each in enumerate(method["instructions"])
    )
    return Method(place, method["name"], method["target"], instructions, tuple(method["outputs"]))


def layer_of(origin: str) -> str:
    """Returns "model.layers.3" for "model.layers.3.mlp"; what is in no layer stays as it is."""
    parts = origin.split(".")
    for index, part in enumerate(parts):
        if part.isdigit() and index:
            return ".".join(parts[: index + 1])
    return origin or "the model"
