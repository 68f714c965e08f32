"""Products with weights, their inputs, lookups."""

from __future__ import annotations

from dataclasses import dataclass

from llm_export.program.instructions import Instruction, fixed, number, optional
from llm_export.program.specs import WeightSpec

from .blob import Op, View
from .graph_builder import GraphBuilder, product
from .refusals import Refusal
from .registry import ROWS, op
from .rows import NORM_OF_A_LINEAR

GATES = ("none", "silu", "gelu", "gelu_tanh", "relu", "sigmoid", "relu_squared", "identity")
COLUMNS_OF_A_SUM = 32
MAX_KEPT_COLUMNS = 3072  # of a row in the shared memory that every GPU has
OF_HEADS = -1  # in place of outputs of an input: its rows are heads, each with a matrix
PRODUCT = (Refusal.SCALES, Refusal.INT8_WITH_DENSE, *ROWS)


@op("mote.embedding")
def embedding(graph: GraphBuilder, instruction: Instruction) -> None:
    ids, table = graph.integers(instruction.inputs[0]), graph.matrix(instruction.inputs[1])
    output = graph.result(instruction.outputs[0])
    is_rotated = bool(number(instruction, "rotated"))
    rows = graph.new(output.sizes) if is_rotated else output
    graph.node(Op.embedding, (ids, table), (rows,))
    if is_rotated:
        graph.node(Op.rotate, (graph.rows(rows),), (output,), (1,))


@dataclass(frozen=True)
class FusedNorm:
    """A norm of a linear's input. weight: of the method, or -1"""

    is_present: bool
    weight: int
    numbers: tuple[float, float]

    @staticmethod
    def of(instruction: Instruction, weight: int) -> FusedNorm:
        if instruction.attributes["norm"] != "rms":
            return NO_NORM
        return FusedNorm(True, weight, (number(instruction, "norm_eps"), number(instruction, "norm_unit_offset")))


NO_NORM = FusedNorm(False, -1, (0.0, 0.0))


def normed(graph: GraphBuilder, x: View, fused: FusedNorm) -> View:
    """The rows behind their norm, made once for all who read the same."""

    def make() -> tuple[View, ...]:
        y = graph.new(x.sizes)
        weight = graph.parameter(fused.weight)
        graph.node(Op.norm, (x, weight, None), (y,), (NORM_OF_A_LINEAR,), fused.numbers)
        return (y,)

    return graph.made_once(("norm", x, fused), make)[0] if fused.is_present else x


def quantized(graph: GraphBuilder, x: View, fused: FusedNorm, *, is_rotated: bool) -> tuple[View, ...]:
    """Codes of rows, their scales and zero points, sums of 32 codes; made once for all who read the same."""

    def make() -> tuple[View, ...]:
        weight = graph.parameter(fused.weight)
        columns, rows = x.sizes[-1].constant, product(x.sizes[:-1])
        made = tuple(graph.bytes(rows, each) for each in (2 * columns, 8, 4 * columns // COLUMNS_OF_A_SUM))
        turned = (graph.new(x.sizes),) if is_rotated and columns > MAX_KEPT_COLUMNS else ()
        integers = (int(fused.is_present), int(is_rotated), int(is_rotated))
        graph.node(Op.quantize, (x, weight), (*made, *turned), integers, fused.numbers)
        return made

    return graph.made_once(("codes", x, fused, is_rotated), make)


def quantized_in_groups(graph: GraphBuilder, x: View, fused: FusedNorm) -> tuple[View, ...]:
    """Codes of rows, a scale for 32 of them, sums of 16; made once for all who read the same."""

    def make() -> tuple[View, ...]:
        weight = graph.parameter(fused.weight)
        columns, rows = x.sizes[-1].constant, product(x.sizes[:-1])
        sizes = (2 * columns, 4 * columns // COLUMNS_OF_A_SUM, 8 * columns // COLUMNS_OF_A_SUM)
        made = tuple(graph.bytes(rows, each) for each in sizes)
        graph.node(Op.quantize_groups, (x, weight), made, (int(fused.is_present),), fused.numbers)
        return made

    return graph.made_once(("groups", x, fused), make)


@dataclass(frozen=True)
class Weight:
    """A matrix, or a stack of experts. bias: or None"""

    spec: WeightSpec
    matrix: View
    bias: View | None
    activations: str

    @staticmethod
    def of(graph: GraphBuilder, instruction: Instruction, weight: int, bias: int, rank: int = 2) -> Weight:
        spec, activations = graph.spec(weight), instruction.attributes["activations"]
        if activations != "float" and not spec.bits:
            raise Refusal.INT8_WITH_DENSE.of()
        if activations in ("int8", "rotated_int8") and spec.scales is not None:
            raise Refusal.SCALES.of()
        return Weight(spec, graph.matrix(weight, rank), graph.parameter(bias), activations)


def multiply(
    graph: GraphBuilder, x: View, fused: FusedNorm, weight: Weight, other: View | None, output: View,
    numbers: tuple[int, int],
) -> None:  # fmt: skip
    """x: rows   other: residual, or numbers of experts   numbers: gate, and outputs of an input"""
    others = (weight.matrix, weight.bias, other)
    if weight.activations == "float":
        graph.node(Op.float_product, (normed(graph, x, fused), *others), (output,), numbers)
        return
    in_groups = weight.activations == "grouped_int8"
    if in_groups:
        codes = quantized_in_groups(graph, x, fused)
    else:
        codes = quantized(graph, x, fused, is_rotated=weight.activations == "rotated_int8")
    graph.node(Op.group_product if in_groups else Op.product, (*codes, *others), (output,), numbers)


def lower_linear(
    graph: GraphBuilder, instruction: Instruction, others: tuple[int, int], norm_weight: int, gate: str
) -> None:
    """others: bias and residual"""
    if gate not in GATES:
        raise Refusal.FUNCTION.of(function=gate)
    weight = Weight.of(graph, instruction, instruction.inputs[1], others[0])
    gates = weight.spec.shape[0] // 2
    if gate != "none" and weight.activations != "float" and gates % 16:
        raise Refusal.GATE_ROWS.of(rows=gates)
    x = graph.rows(graph.activation(instruction.inputs[0]))
    output = graph.result(instruction.outputs[0])
    residual = graph.rows(graph.activation(others[1])) if others[1] >= 0 else None
    if residual is not None and residual.sizes[0] != fixed(1):
        raise Refusal.ROWS.of()
    fused = FusedNorm.of(instruction, norm_weight)
    multiply(graph, x, fused, weight, residual, output, (GATES.index(gate), 0))


@op("mote.linear", refuses=PRODUCT)
def linear(graph: GraphBuilder, instruction: Instruction) -> None:
    others = (optional(instruction, 2), optional(instruction, 3))
    lower_linear(graph, instruction, others, optional(instruction, 4), "none")


@op("mote.gated_linear", refuses=(*PRODUCT, Refusal.FUNCTION, Refusal.GATE_ROWS))
def gated_linear(graph: GraphBuilder, instruction: Instruction) -> None:
    others = (optional(instruction, 2), -1)
    lower_linear(graph, instruction, others, optional(instruction, 3), instruction.attributes["function"])


def softcapped(graph: GraphBuilder, x: View, cap: float) -> View:
    """cap tanh(x / cap), or x where there is no cap. x: of any strides"""
    if not cap:
        return x
    y = graph.new(x.sizes)
    graph.map("softcap", (x,), y, (cap, 0.0))
    return y


def gated(graph: GraphBuilder, hidden: View, instruction: Instruction) -> View:
    """What the experts' second matrices get of [N, K, 2F] or, with a single one, of [N, K, F]."""
    function, layout = instruction.attributes["function"], instruction.attributes["layout"]
    limit, alpha = number(instruction, "limit"), number(instruction, "alpha")
    if function not in GATES[1:]:
        raise Refusal.FUNCTION.of(function=function)
    gate_cap, up_cap = (number(instruction, f"{side}_softcap", 0.0) for side in ("gate", "up"))
    if (gate_cap or up_cap) and (limit or layout == "single"):
        raise Refusal.FUNCTION.of(function=f"{function} with softcaps, and a limit or no up")
    width = hidden.sizes[-1].constant
    columns = fixed(width if layout == "single" else width // 2)
    y = graph.new((*hidden.sizes[:-1], columns))
    if layout == "single":
        one = graph.new((fixed(1),))
        graph.map("fill", (), one, (1.0, 0.0))
        graph.map(f"gated_{function}", (hidden, one), y)
        return y
    sides = (slice(0, width // 2), slice(width // 2, width)) if layout == "concatenated" else (
        slice(0, width, 2), slice(1, width, 2))  # fmt: skip
    gate, up = (graph.moved(hidden, lambda x, _, side=side: x[..., side]) for side in sides)
    up = softcapped(graph, up, up_cap)
    if gate_cap:
        factors = graph.new(y.sizes)
        graph.map("mul", (softcapped(graph, gate, gate_cap), up), factors)
        up, function, alpha = factors, "sigmoid", 0.0
    graph.map("gated_alpha" if alpha else f"gated_{function}", (gate, up), y, (alpha, limit))
    return y


@op("mote.head_linear", refuses=PRODUCT)
def head_linear(graph: GraphBuilder, instruction: Instruction) -> None:
    weight = Weight.of(graph, instruction, instruction.inputs[1], -1, rank=3)
    x = graph.rows(graph.activation(instruction.inputs[0]))
    multiply(graph, x, NO_NORM, weight, None, graph.result(instruction.outputs[0]), (0, OF_HEADS))


@op("mote.expert_linear", refuses=PRODUCT)
def expert_linear(graph: GraphBuilder, instruction: Instruction) -> None:
    x, chosen = graph.rows(graph.activation(instruction.inputs[0])), graph.integers(instruction.inputs[1])
    weight = Weight.of(graph, instruction, instruction.inputs[2], -1, rank=3)
    result = graph.result(instruction.outputs[0])
    multiply(graph, x, NO_NORM, weight, chosen, result, (0, chosen.sizes[1].constant))


@op("mote.moe_experts", refuses=(*PRODUCT, Refusal.FUNCTION))
def experts(graph: GraphBuilder, instruction: Instruction) -> None:
    """Outputs of all chosen experts, each a row; then sums of these rows by weights."""
    x = graph.activation(instruction.inputs[0])
    chosen, weights = graph.integers(instruction.inputs[1]), graph.activation(instruction.inputs[2])
    first, second = (
        Weight.of(graph, instruction, instruction.inputs[i], optional(instruction, i + 2), rank=3) for i in (3, 4)
    )
    count = chosen.sizes[1]
    hidden = graph.new((*chosen.sizes, fixed(first.spec.shape[1])))
    multiply(graph, graph.rows(x), NO_NORM, first, chosen, hidden, (0, count.constant))
    middle = gated(graph, hidden, instruction)
    rows = graph.new((*chosen.sizes, x.sizes[-1]))
    multiply(graph, graph.rows(middle), NO_NORM, second, chosen, rows, (0, 1))
    row = View(
        weights.value, weights.offset, (x.sizes[0], fixed(1), count), (weights.strides[0], fixed(0), weights.strides[1])
    )
    graph.node(Op.matmul, (graph.four(row), graph.four(rows)), (graph.result(instruction.outputs[0]),))
