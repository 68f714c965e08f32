"""One method of a program, or a part of it, while it becomes a function of an asset."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch

from llm_export.partition.backend import Subgraph
from llm_export.program.instructions import Dim, Instruction, optional
from llm_export.program.specs import StateSpec, WeightSpec

from .emitter import BOOLEAN, FLOAT, INTEGER, Emitter, Tensor
from .refusals import Refusal
from .weights import Weights

REST = "_rest"
REST_SCALE = 2048.0  # of what a float16 loses, so that it does not vanish
# Integers are 32 bits wide there: positions and ids are.
DTYPES = {torch.float32: FLOAT, torch.int64: INTEGER, torch.int32: INTEGER, torch.bool: BOOLEAN}


@dataclass(frozen=True)
class Port:
    """An input, output or state of a function."""

    name: str
    shape: tuple[int, ...]
    dtype: str


def sizes(shape: tuple[Dim, ...]) -> tuple[int, ...]:
    if any(size.tokens for size in shape):
        raise Refusal.LENGTH.of()
    return tuple(size.constant for size in shape)


def integers(instruction: Instruction, name: str) -> list[int]:
    return [size.constant for size in instruction.attributes[name]]


def state_ports(index: int, spec: StateSpec, capacity: int, dtype: str, precise: str) -> dict[str, Port]:
    """What holds a state of the program: keys and values of so many positions, or the state itself.

    A recurrent state goes through every token. One of float16 that is computed in float32 is held in two parts, of
    which the second has what the first one loses.
    """
    if spec.kind == "recurrent":
        whole = Port(f"state{index}", tuple(spec.shape), dtype)
        rest = {"rest": replace(whole, name=whole.name + REST)} if dtype != precise else {}
        return {"state": whole, **rest}
    if spec.kind != "kv_cache":
        raise Refusal.STATE.of(kind=spec.kind)
    widths = {"keys": spec.head_dim, "values": spec.value_head_dim}
    return {
        part: Port(f"{part}{index}", (1, spec.num_heads, capacity, width), dtype)
        for part, width in widths.items()
        if width
    }


@dataclass
class Function:
    """The values of a subgraph while it is lowered.

    capacity: positions that caches hold   states: what each became, by its name
    carried: what goes out in place of that, where states are carried: rows that tokens add to caches, or whole states
    """

    subgraph: Subgraph
    emitter: Emitter
    weights: Weights
    capacity: int
    values: dict[int, Tensor] = field(default_factory=dict)
    states: dict[str, Tensor] = field(default_factory=dict)
    carried: dict[str, Tensor] = field(default_factory=dict)

    @property
    def method(self):
        return self.subgraph.method

    def shape(self, index: int) -> tuple[int, ...]:
        return sizes(tuple(self.method.values[index].shape))

    def dtype(self, index: int) -> str:
        dtype = self.method.values[index].dtype
        if dtype not in DTYPES:
            raise Refusal.DTYPE.of(dtype=str(dtype).removeprefix("torch."))
        return self.emitter.float_dtype if dtype == torch.float32 else DTYPES[dtype]

    def inputs(self) -> list[Port]:
        names = zip(self.method.input_names, self.method.inputs, strict=True)
        return [self._port(name, index) for name, index in names]

    def outputs(self) -> list[Port]:
        return [self._port(f"output{i}", index) for i, index in enumerate(self.method.outputs)]

    def _port(self, name: str, index: int) -> Port:
        dtype = self.dtype(index)
        dtype = INTEGER if dtype == BOOLEAN and not self.emitter.bool_ports else dtype
        return Port(name, self.emitter.held(self.shape(index)), dtype)

    def ports_of(self, index: int) -> dict[str, Port]:
        """What holds a state of the program, by its parts."""
        spec, e = self.subgraph.states[index], self.emitter
        return state_ports(index, spec, self.capacity, e.state_dtype, e.precise_dtype)

    def state_inputs(self) -> list[Port]:
        touched = dict.fromkeys(
            i.attributes["state"][0].constant for i in self.method.instructions if "state" in i.attributes
        )
        return [port for index in touched for port in self.ports_of(index).values()]

    def output_of(self, state: str) -> str:
        """The output with what becomes of a state; "": none."""
        return f"{state}_next" if self.emitter.carries_states else ""

    # Operands of an instruction.

    def operand(self, index: int) -> Tensor:
        """Elements of any dtype: activations, or a weight."""
        value = self.method.values[index]
        if value.kind == "weight":
            return self.weights.dense(self.emitter, self.subgraph.weights[value.weight])
        return self.values[index]

    def maybe(self, instruction: Instruction, position: int) -> Tensor | None:
        index = optional(instruction, position)
        return None if index < 0 else self.operand(index)

    def spec(self, index: int) -> WeightSpec:
        value = self.method.values[index]
        if value.kind != "weight":
            raise Refusal.COMPUTED_WEIGHT.of()
        return self.subgraph.weights[value.weight]

    def matrix(self, index: int) -> Tensor:
        """A stored weight [.., N, K], as activations are."""
        return self.weights.matrix(self.emitter, self.spec(index))

    def rows(self, index: int, indices: Tensor) -> Tensor:
        return self.weights.rows(self.emitter, self.spec(index), indices)

    def state(self, instruction: Instruction) -> tuple[StateSpec, dict[str, Port]]:
        (index,) = integers(instruction, "state")
        return self.subgraph.states[index], self.ports_of(index)

    def held(self, name: str) -> Tensor:
        """A state that goes through every token."""
        e, found = self.emitter, self.emitter.precise(self.states[name])
        if name + REST not in self.states:
            return found
        return e.add(found, e.scaled(e.precise(self.states[name + REST]), 1 / REST_SCALE))

    def keep(self, name: str, value: Tensor) -> None:
        """Says what a state becomes."""
        e = self.emitter
        stored = e.cast(value, e.state_dtype)
        if name + REST in self.states:
            rest = e.cast(e.scaled(e.sub(value, e.precise(stored)), REST_SCALE), e.state_dtype)
            self.states[name + REST] = e.kept(name + REST, rest)
        if e.carries_states:
            self.states[name] = self.carried[name] = stored
        else:
            self.states[name] = e.kept(name, stored)

    # Results.

    def give(self, index: int, result: Tensor) -> None:
        """Says what a value of the method is."""
        shape, dtype = self.shape(index), self.dtype(index)
        self.values[index] = self.emitter.cast(self.emitter.reshape(result, shape), dtype)

    def first_position(self, instruction: Instruction, position: int) -> tuple[Tensor, Tensor]:
        """The positions of the tokens, int32 [T], and that of the first one [1]."""
        index = instruction.inputs[position]
        if self.method.values[index].kind != "input":
            raise Refusal.INPUT.of(name="positions")
        positions = self.emitter.reshape(self.values[index], (int(np.prod(self.shape(index))),))
        return positions, self.emitter.slice(positions, 0, 0, 1)

    def expect_float(self, instruction: Instruction) -> None:
        """Errors: Refused if the inputs of a product are to be rounded."""
        if instruction.attributes.get("activations", "float") != "float":
            raise Refusal.ROUNDED.of()
