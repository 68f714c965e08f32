"""Instructions to nodes for a GPU: a function for each op, by its name in docs/ops.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from llm_export.partition.backend import Backend, Blob, Subgraph
from llm_export.program.instructions import Instruction

from .blob import Op, View
from .graph_builder import GraphBuilder, contiguous, fixed, integers, number, optional, plus, product
from .maps import BINARY, UNARY
from .refusals import MAX_QUERY_HEADS, Refusal

Lower = Callable[[GraphBuilder, Instruction], None]
Move = Callable[[torch.Tensor, int], torch.Tensor]  # of a tensor and T
GATES = ("none", "silu", "gelu", "gelu_tanh", "relu", "sigmoid", "relu_squared", "identity")
LAYOUTS = ("half", "half_flipped", "interleaved")
COLUMNS_OF_A_SUM = 32
NORM_OF_A_LINEAR = 2
MAX_KEPT_COLUMNS = 3072  # of a row in the shared memory that every GPU has


@dataclass(frozen=True)
class OpEntry:
    """refuses: its reasons beside those that any op may have"""

    lower: Lower
    refuses: tuple[Refusal, ...]


OPS: dict[str, OpEntry] = {}
ROWS = (Refusal.STRIDES, Refusal.ROWS)
PRODUCT = (Refusal.SCALES, Refusal.INT8_WITH_DENSE, *ROWS)


class VulkanBackend(Backend):
    """Runs whole decoders on a GPU, which keeps keys and values too."""

    name = "vulkan"
    owns_states = True

    def lower(self, subgraph: Subgraph) -> Blob:
        if any(instruction.op not in OPS for instruction in subgraph.method.instructions):
            raise Refusal.OP.of()
        graph = GraphBuilder(subgraph)
        for instruction in subgraph.method.instructions:
            graph.origin = instruction.origin
            OPS[instruction.op].lower(graph, instruction)
        return Blob(graph.build(), tuple(graph.weights))


def op(*names: str, refuses: tuple[Refusal, ...] = ()) -> Callable[[Lower], Lower]:
    def register(function: Lower) -> Lower:
        OPS.update(dict.fromkeys(names, OpEntry(function, refuses)))
        return function

    return register


# Views and copies


def view_of(graph: GraphBuilder, instruction: Instruction, function: Move) -> None:
    x = graph.activation(instruction.inputs[0])
    moved = graph.moved(x, function)
    if moved is None:  # as PyTorch: what no strides can say is copied first
        whole = graph.new(x.sizes)
        graph.copy(x, whole)
        moved = graph.moved(whole, function)
    if moved is None:
        raise Refusal.GROWTH.of()
    graph.same(instruction.outputs[0], moved)


@op("aten.view")
def view(graph: GraphBuilder, instruction: Instruction) -> None:
    sizes = instruction.attributes["size"]
    view_of(graph, instruction, lambda x, tokens: x.view([size.at(tokens) for size in sizes]))


@op("aten.permute")
def permute(graph: GraphBuilder, instruction: Instruction) -> None:
    axes = integers(instruction, "dims")
    view_of(graph, instruction, lambda x, _: x.permute(axes))


@op("aten.unsqueeze")
def unsqueeze(graph: GraphBuilder, instruction: Instruction) -> None:
    (axis,) = integers(instruction, "dim")
    view_of(graph, instruction, lambda x, _: x.unsqueeze(axis))


@op("aten.squeeze")
def squeeze(graph: GraphBuilder, instruction: Instruction) -> None:
    axes = integers(instruction, "dims")
    view_of(graph, instruction, lambda x, _: x.squeeze(axes))


@op("aten.expand")
def expand(graph: GraphBuilder, instruction: Instruction) -> None:
    sizes = instruction.attributes["size"]
    view_of(graph, instruction, lambda x, tokens: x.expand([size.at(tokens) for size in sizes]))


@op("aten.slice")
def slice_(graph: GraphBuilder, instruction: Instruction) -> None:
    (axis,), (step,) = integers(instruction, "dim"), integers(instruction, "step")
    (begin,), (end,) = instruction.attributes["start"], instruction.attributes["end"]
    before = (slice(None),) * axis
    view_of(graph, instruction, lambda x, tokens: x[(*before, slice(begin.at(tokens), end.at(tokens), step))])


@op("aten.select")
def select(graph: GraphBuilder, instruction: Instruction) -> None:
    (axis,), (index,) = integers(instruction, "dim"), instruction.attributes["index"]
    view_of(graph, instruction, lambda x, tokens: x.select(axis, index.at(tokens)))


@op("aten.clone", "aten._to_copy", refuses=(Refusal.WALK,))
def clone(graph: GraphBuilder, instruction: Instruction) -> None:
    x = graph.activation(instruction.inputs[0])
    if x.strides == contiguous(x.sizes):
        graph.same(instruction.outputs[0], x)
    else:
        graph.copy(x, graph.result(instruction.outputs[0]))


@op("aten.cat", refuses=(Refusal.WALK,))
def cat(graph: GraphBuilder, instruction: Instruction) -> None:
    parts, (axis,) = [graph.operand(index) for index in instruction.inputs], integers(instruction, "dim")
    output = graph.result(instruction.outputs[0])
    begin = fixed(0)
    for part in parts:
        offset = plus(output.offset, product((begin, output.strides[axis])))
        graph.copy(part, View(output.value, offset, part.sizes, output.strides))
        begin = plus(begin, part.sizes[axis])


# Pointwise


@op(*(f"aten.{name}" for name in UNARY if name not in ("copy", "gelu_tanh")), refuses=(Refusal.WALK,))
def unary(graph: GraphBuilder, instruction: Instruction) -> None:
    name = instruction.op.removeprefix("aten.")
    if instruction.attributes.get("approximate") == "tanh":
        name = "gelu_tanh"
    graph.map(name, (graph.activation(instruction.inputs[0]),), graph.result(instruction.outputs[0]))


@op(*(f"aten.{name}" for name in BINARY), refuses=(Refusal.WALK, Refusal.CONSTANTS))
def binary(graph: GraphBuilder, instruction: Instruction) -> None:
    if all(graph.is_weight(index) for index in instruction.inputs):
        raise Refusal.CONSTANTS.of()
    inputs = [graph.operand(index) for index in instruction.inputs]
    graph.map(instruction.op.removeprefix("aten."), inputs, graph.result(instruction.outputs[0]))


# Language-model ops


@op("mote.embedding", refuses=(Refusal.INPUT,))
def embedding(graph: GraphBuilder, instruction: Instruction) -> None:
    ids, table = graph.integer_input(instruction.inputs[0], "ids"), graph.matrix(instruction.inputs[1])
    output = graph.result(instruction.outputs[0])
    is_rotated = bool(number(instruction, "rotated"))
    rows = graph.new(output.sizes) if is_rotated else output
    graph.node(Op.embedding, (ids, table), (rows,))
    if is_rotated:
        graph.node(Op.rotate, (graph.rows(rows),), (output,), (1,))


@op("mote.rope_table", refuses=(Refusal.INPUT,))
def rope_table(graph: GraphBuilder, instruction: Instruction) -> None:
    positions = graph.integer_input(instruction.inputs[0], "positions")
    frequencies = graph.dense(instruction.inputs[1])
    outputs = [graph.result(index) for index in instruction.outputs]
    is_interleaved = instruction.attributes.get("layout") == "interleaved"
    scale = number(instruction, "scale", 1.0)
    graph.node(Op.rope_table, (positions, frequencies), outputs, (int(is_interleaved),), (scale,))


@op("mote.rms_norm", "mote.layer_norm", refuses=ROWS)
def norm(graph: GraphBuilder, instruction: Instruction) -> None:
    x = graph.rows(graph.activation(instruction.inputs[0]))
    weight, bias = (optional(instruction, i) for i in (1, 2))
    parameters = [graph.dense(index) if index >= 0 else None for index in (weight, bias)]
    is_layer = instruction.op == "mote.layer_norm"
    numbers = (number(instruction, "eps"), number(instruction, "unit_offset"))
    graph.node(Op.norm, (x, *parameters), (graph.result(instruction.outputs[0]),), (int(is_layer),), numbers)


@dataclass(frozen=True)
class FusedNorm:
    """A norm of a linear's input. weight: of the method, or -1"""

    is_present: bool
    weight: int
    numbers: tuple[float, float]

    @staticmethod
    def of(instruction: Instruction, weight: int) -> FusedNorm:
        numbers = (number(instruction, "norm_eps"), number(instruction, "norm_unit_offset"))
        return FusedNorm(instruction.attributes["norm"] == "rms", weight, numbers)


def normed(graph: GraphBuilder, x: View, fused: FusedNorm) -> View:
    """The rows behind their norm, made once for all who read the same."""

    def make() -> tuple[View, ...]:
        y = graph.new(x.sizes)
        weight = graph.dense(fused.weight) if fused.weight >= 0 else None
        graph.node(Op.norm, (x, weight, None), (y,), (NORM_OF_A_LINEAR,), fused.numbers)
        return (y,)

    return graph.made_once(("norm", x, fused), make)[0] if fused.is_present else x


def quantized(graph: GraphBuilder, x: View, fused: FusedNorm, *, is_rotated: bool) -> tuple[View, ...]:
    """Codes of rows, their scales and zero points, sums of 32 codes; made once for all who read the same."""

    def make() -> tuple[View, ...]:
        weight = graph.dense(fused.weight) if fused.weight >= 0 else None
        columns, rows = x.sizes[-1].constant, product(x.sizes[:-1])
        made = tuple(graph.bytes(rows, each) for each in (2 * columns, 8, 4 * columns // COLUMNS_OF_A_SUM))
        turned = (graph.new(x.sizes),) if is_rotated and columns > MAX_KEPT_COLUMNS else ()
        integers_ = (int(fused.is_present), int(is_rotated), int(is_rotated))
        graph.node(Op.quantize, (x, weight), (*made, *turned), integers_, fused.numbers)
        return made

    return graph.made_once(("codes", x, fused, is_rotated), make)


def quantized_in_groups(graph: GraphBuilder, x: View, fused: FusedNorm) -> tuple[View, ...]:
    """Codes of rows, a scale for 32 of them, sums of 16; made once for all who read the same."""

    def make() -> tuple[View, ...]:
        columns, rows = x.sizes[-1].constant, product(x.sizes[:-1])
        sizes = (2 * columns, 4 * columns // COLUMNS_OF_A_SUM, 8 * columns // COLUMNS_OF_A_SUM)
        source = graph.rows(normed(graph, x, fused))
        made = tuple(graph.bytes(rows, each) for each in sizes)
        graph.node(Op.quantize_groups, (source,), made)
        return made

    return graph.made_once(("groups", x, fused), make)


def multiply(
    graph: GraphBuilder, instruction: Instruction, others: tuple[int, int], norm_weight: int, gate: str
) -> None:
    """others: bias and residual"""
    weight = instruction.inputs[1]
    spec, activations = graph.spec(weight), instruction.attributes["activations"]
    if gate not in GATES:
        raise Refusal.FUNCTION.of(function=gate)
    matrix = graph.matrix(weight)
    x = graph.rows(graph.activation(instruction.inputs[0]))
    output = graph.result(instruction.outputs[0])
    bias = graph.dense(others[0]) if others[0] >= 0 else None
    residual = graph.rows(graph.activation(others[1])) if others[1] >= 0 else None
    if residual is not None and residual.sizes[0] != fixed(1):
        raise Refusal.ROWS.of()
    fused = FusedNorm.of(instruction, norm_weight)
    is_int8 = activations in ("int8", "rotated_int8")
    if is_int8 or activations == "grouped_int8":
        if not spec.bits:
            raise Refusal.INT8_WITH_DENSE.of()
        if gate != "none" and spec.shape[0] // 2 % 16:
            raise Refusal.GATE_ROWS.of(rows=spec.shape[0] // 2)
        if is_int8:
            if spec.scales is not None:
                raise Refusal.SCALES.of()
            codes = quantized(graph, x, fused, is_rotated=activations == "rotated_int8")
        else:
            codes = quantized_in_groups(graph, x, fused)
        graph.node(
            Op.product if is_int8 else Op.group_product,
            (*codes, matrix, bias, residual),
            (output,),
            (GATES.index(gate),),
        )
        return
    x = normed(graph, x, fused)
    graph.node(Op.float_product, (x, matrix, bias, residual), (output,), (GATES.index(gate),))


@op("mote.linear", refuses=PRODUCT)
def linear(graph: GraphBuilder, instruction: Instruction) -> None:
    others = (optional(instruction, 2), optional(instruction, 3))
    multiply(graph, instruction, others, optional(instruction, 4), "none")


@op("mote.gated_linear", refuses=(*PRODUCT, Refusal.FUNCTION, Refusal.GATE_ROWS))
def gated_linear(graph: GraphBuilder, instruction: Instruction) -> None:
    others = (optional(instruction, 2), -1)
    multiply(graph, instruction, others, optional(instruction, 3), instruction.attributes["function"])


@op("mote.rope", refuses=(Refusal.STRIDES,))
def rope(graph: GraphBuilder, instruction: Instruction) -> None:
    x, cos, sin = (graph.activation(index) for index in instruction.inputs)
    if x.strides[-1] != fixed(1):
        raise Refusal.STRIDES.of()
    layout = LAYOUTS.index(instruction.attributes["layout"])
    graph.node(Op.rope, (x, cos, sin), (graph.result(instruction.outputs[0]),), (layout,))


@op(
    "mote.attention",
    refuses=(Refusal.INPUT, Refusal.STATE, Refusal.HEADS, Refusal.WIDTH, Refusal.BIDIRECTIONAL, Refusal.SINK_POSITIONS),
)
def attention(graph: GraphBuilder, instruction: Instruction) -> None:
    if number(instruction, "bidirectional"):
        raise Refusal.BIDIRECTIONAL.of()
    (state,) = integers(instruction, "state")
    cache = graph.cache(state)
    activations = [optional(instruction, i) for i in (0, 1, 2)]
    q, k, v = (graph.activation(index) if index >= 0 else None for index in activations)
    if any(view is not None and view.strides[-1] != fixed(1) for view in (q, k, v)):
        raise Refusal.STRIDES.of()
    heads = q.sizes[1].constant
    if heads > MAX_QUERY_HEADS * cache.num_heads:
        raise Refusal.HEADS.of(heads=heads, kv_heads=cache.num_heads)
    positions = graph.integer_input(instruction.inputs[3], "positions")
    sinks, slopes = (optional(instruction, i) for i in (4, 5))
    parameters = [graph.dense(index) if index >= 0 else None for index in (sinks, slopes)]
    integers_ = (state, int(number(instruction, "window")))
    numbers = (number(instruction, "scale"), number(instruction, "softcap"))
    inputs = (q, k, v, positions, *parameters)
    graph.node(Op.attention, inputs, (graph.result(instruction.outputs[0]),), integers_, numbers)
