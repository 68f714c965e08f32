"""How the captured graph uses each weight: what a recipe decides on."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field

import torch
from torch.export.graph_signature import InputKind
from torch.fx import Node

from llm_export.capture import ops  # noqa: F401  (registers mote::)
from llm_export.capture.methods import Methods
from llm_export.program.instructions import EMBED, MTP

aten = torch.ops.aten

LINEARS = {aten.linear.default: 1, torch.ops.mote.linear.default: 1, torch.ops.mote.gated_linear.default: 1}
# The weight of these lies [in_features, out_features].
PRODUCTS = {aten.addmm.default: 2, aten.mm.default: 1, aten.matmul.default: 1}
EMBEDDINGS = {aten.embedding.default: (0, 1), torch.ops.mote.embedding.default: (1, 0)}  # positions of weight and ids
EXPERTS = {torch.ops.mote.moe_experts.default: (3, 4)}
EXPERT_LINEARS = {torch.ops.mote.expert_linear.default: 2}
HEADS = {torch.ops.mote.head_linear.default: 1}
ATTENTION = {torch.ops.mote.attention.default, torch.ops.mote.attention_lse.default}
TRANSPOSES = {aten.t.default, aten.transpose.int, aten.permute.default, aten.numpy_T.default}
# Ops that a router's scores pass on their way to the choice of experts.
ROUTING_STEPS = {
    "add", "sub", "mul", "div", "softmax", "_softmax", "sigmoid", "view", "reshape", "unsqueeze", "squeeze", "_to_copy",
    "clone", "sqrt", "softplus", "masked_fill", "where", "sum", "expand", "scatter", "gather", "neg", "exp", "tanh",
}  # fmt: skip
MAX_ROUTING_STEPS = 12
MOVES = {*TRANSPOSES, aten.cat.default}  # of queries on their way into attention
MAX_MOVES = 3


@dataclass
class Use:
    """One stored weight: its names in the state dict, what reads it, and its in_features."""

    names: list[str] = field(default_factory=list)
    # linear (of groups of features too), product, head, embedding, experts, expert_products, heads, other; products
    # read their weight transposed
    kinds: set[str] = field(default_factory=set)

    @property
    def kind(self) -> str:
        """linear, head, embedding, tied, experts, heads (a matrix for each head of attention) or other."""
        if self.kinds == {"embedding", "head"}:
            return "tied"
        if len(self.kinds) != 1:
            return "other"
        (kind,) = self.kinds
        return {"product": "linear", "expert_products": "experts"}.get(kind, kind)

    @property
    def is_transposed(self) -> bool:
        """Whether the weight lies [in_features, out_features]."""
        return self.kinds in ({"product"}, {"expert_products"})

    def in_features(self, shape: tuple[int, ...]) -> int:
        return shape[-2] if self.is_transposed else shape[-1]


def weight_uses(methods: Methods) -> dict[tuple[str, ...], Use]:
    """Returns the use of each entry of `methods.weights`, by its sources; all graphs are looked at."""
    uses: dict[tuple[str, ...], Use] = {}
    for name, spec in methods.weights.items():
        uses.setdefault(spec.sources, Use()).names.append(name)
    for method, program in methods.programs.items():
        nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
        inputs = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
        output = next(node for node in program.graph.nodes if node.op == "output").args[0][0]
        graph = _Graph(nodes[inputs[0]], output if method != EMBED else None, method in MTP)
        for spec in program.graph_signature.input_specs:
            if spec.kind != InputKind.USER_INPUT and spec.target in methods.weights:
                use = uses[methods.weights[spec.target].sources]
                is_dense = method == EMBED and methods.weights[spec.target].sources[0] in methods.constants
                use.kinds |= {"other"} if is_dense else graph.kinds(nodes[spec.arg.name])
                use.names += [name for name in graph.readers.get(spec.arg.name, ()) if name not in use.names]
    for sources, use in uses.items():  # of tied weights the graph has one name, the checkpoint may have another
        use.names += [name for name in sources if name not in use.names]
    return uses


def expert_pairs(methods: Methods) -> set[tuple[tuple[str, ...] | None, ...]]:
    """Returns the sources of the stacks that a `mote::moe_experts` multiplies with; None for one that is computed."""
    pairs = set()
    for program in methods.programs.values():
        targets = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs}
        for node in program.graph.nodes:
            stacks = [_stored(node.args[at]) for at in EXPERTS.get(node.target, ())]
            found = [methods.weights.get(targets.get(stack.name, "")) for stack in stacks]
            if found:
                pairs.add(tuple(None if spec is None else spec.sources for spec in found))
    return pairs


def _stored(stack: Node) -> Node:
    """Returns the placeholder behind a stack of matrices, or what else it is computed from."""
    while (stack.target in TRANSPOSES and _swaps_last_two(stack)) or takes_first(stack):
        stack = stack.args[0]
    return stack


def takes_first(node: Node) -> bool:
    """Whether it is the first matrices of a stack."""
    if node.target is not aten.slice.Tensor or node.args[0].meta["val"].dim() != 3:
        return False
    dim, start, _, step = (*node.args[1:], *(0, None, None, 1)[len(node.args) - 1 :])
    return (dim, start or 0, step) == (0, 0, 1)


class _Graph:
    """output: of logits; None: there are none; looks_up_any: whether all ids are of tokens, wherever they come from."""

    def __init__(self, input_ids: Node, output: Node | None, looks_up_any: bool):
        self.looks_up_any = looks_up_any
        self.heads = heads(output) if output is not None else set()
        self.from_ids = _reachable(input_ids)
        self.readers: dict[str, list[str]] = {}  # placeholder -> names of the heads that read it

    def kinds(self, weight: Node, transposed: bool = False) -> set[str]:
        found: set[str] = set()
        for user in weight.users:
            found |= self._kind(user, weight, transposed)
        return found

    def _kind(self, user: Node, weight: Node, transposed: bool) -> set[str]:
        target = user.target
        if target in TRANSPOSES and _swaps_last_two(user):
            return self.kinds(user, not transposed)
        if takes_first(user):
            found = self.kinds(user, transposed)
            return found if found <= {"experts", "expert_products"} else {"other"}
        if target in LINEARS and user.args[LINEARS[target]] is weight and not transposed:
            kind = self._linear(user, "linear")
            if kind == "head":
                self.readers.setdefault(weight.name, []).append(f"{_module_path(user)}.weight")
            return {kind}
        if target in PRODUCTS and user.args[PRODUCTS[target]] is weight and weight.meta["val"].dim() == 2:
            return {self._linear(user, "linear" if transposed else "product")}
        if target in EMBEDDINGS and not transposed:
            weight_at, ids_at = EMBEDDINGS[target]
            if user.args[weight_at] is weight and (self.looks_up_any or user.args[ids_at] in self.from_ids):
                return {"embedding"}
        stacks = EXPERTS.get(target) or (EXPERT_LINEARS.get(target),)
        if any(at is not None and user.args[at] is weight for at in stacks):
            return {"expert_products" if transposed else "experts"}
        if target in HEADS and user.args[HEADS[target]] is weight and not transposed:
            return {"heads" if _meets_attention(user) else "linear"}
        return {"other"}

    def _linear(self, user: Node, kind: str) -> str:
        if user in self.heads and kind == "linear":
            return "head"
        return "other" if _is_router(user) else kind


def _swaps_last_two(transpose: Node) -> bool:
    """Whether a transpose of one or of a stack of matrices transposes each matrix."""
    rank = transpose.args[0].meta["val"].dim()
    if rank != 3:
        return rank == 2
    if transpose.target is aten.transpose.int:
        return sorted(dim % rank for dim in transpose.args[1:3]) == [1, 2]
    return transpose.target is aten.permute.default and [dim % rank for dim in transpose.args[1]] == [0, 2, 1]


def heads(output: Node) -> set[Node]:
    """Returns the linears that give the logits: the last ones in front of the output."""
    heads, seen, waiting = set(), set(), [output]
    while waiting:
        node = waiting.pop()
        if node.target in LINEARS or node.target in PRODUCTS:
            heads.add(node)
            continue
        fresh = [source for source in node.all_input_nodes if source not in seen]
        seen.update(fresh)
        waiting += fresh
    return heads


def _module_path(node: Node) -> str:
    """Returns the module that the node was traced in."""
    stack = node.meta.get("nn_module_stack") or {"": ("", None)}
    return list(stack.values())[-1][0]


def _reachable(start: Node) -> set[Node]:
    """Returns `start` and the nodes that its value reaches through views and copies of integers."""
    seen, waiting = {start}, [start]
    while waiting:
        for user in waiting.pop().users:
            value = user.meta.get("val")
            if user not in seen and isinstance(value, torch.Tensor) and not value.is_floating_point():
                seen.add(user)
                waiting.append(user)
    return seen


def _meets_attention(product: Node) -> bool:
    """Whether a product for each head is of what attention gives as it is, or goes into it."""
    level = [product]
    for _ in range(MAX_MOVES):
        if any(user.target in ATTENTION for node in level for user in node.users):
            return True
        level = [user for node in level for user in node.users if user.target in MOVES]
    source = product.args[0]
    return source.target in ATTENTION or source.target is operator.getitem and source.args[0].target in ATTENTION


def _is_router(linear: Node) -> bool:
    """Says whether the linear's output decides, after a few pointwise steps, which experts run."""
    level = [linear]
    for _ in range(MAX_ROUTING_STEPS):
        if any(_chooses_experts(user, node) for node in level for user in node.users):
            return True
        users = {user for node in level for user in node.users if user.op == "call_function"}
        level = [user for user in users if _op_name(user) in ROUTING_STEPS]
    return False


def _chooses_experts(user: Node, scores: Node) -> bool:
    """Whether `user` takes the scores as such, not as what the experts compute on."""
    if user.target in EXPERTS or user.target in EXPERT_LINEARS:
        return scores in user.args[1 : EXPERTS.get(user.target, (2,))[0]]
    return _op_name(user) in ("topk", "sort")


def _op_name(node: Node) -> str:
    return getattr(getattr(node.target, "overloadpacket", node.target), "__name__", "")
