"""Graph surgery that the passes share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import Node
from torch.fx.node import map_arg

from llm_export.capture.methods import Methods
from llm_export.program.specs import WeightSpec


class Editor:
    """One graph of `methods` under edit. Call `finish` when done; it checks the graph."""

    def __init__(self, program: ExportedProgram, methods: Methods):
        self.program, self.graph, self.methods = program, program.graph, methods
        self._inputs = {
            spec.arg.name: spec for spec in program.graph_signature.input_specs if spec.kind != InputKind.USER_INPUT
        }

    def calls(self, *targets: str) -> list[Node]:
        """Nodes that call one of the ops (as torch prints them, e.g. "aten.add.Tensor"), in order."""
        return [node for node in self.graph.nodes if is_call(node, *targets)]

    # weights

    def weight_name(self, node: Any) -> str | None:
        """The name under which `methods.weights` knows a placeholder, None for any other node or argument."""
        spec = self._inputs.get(node.name) if isinstance(node, Node) and node.op == "placeholder" else None
        return None if spec is None else spec.target

    def weight(self, node: Any) -> WeightSpec | None:
        name = self.weight_name(node)
        return None if name is None else self.methods.weights.get(name)

    def constant(self, node: Any) -> torch.Tensor | None:
        """The real value of a placeholder that is a constant of the graph."""
        spec = self.weight(node)
        return self.methods.constants.get(spec.sources[0]) if spec is not None and len(spec.sources) == 1 else None

    def add_weight(self, spec: WeightSpec, suffix: str = "") -> Node:
        """Adds a placeholder for a weight named `spec.name` + suffix, or returns the one that is there."""
        name = spec.name + suffix
        for node in self.graph.find_nodes(op="placeholder"):
            if self.weight_name(node) == name:
                return node
        first = next(iter(self.graph.nodes))
        with self.graph.inserting_before(first):
            node = self.graph.placeholder("w_" + "".join(c if c.isalnum() else "_" for c in name)[:80])
        dtype = spec.dtype if not spec.dtype.is_floating_point else torch.float32
        with self.fake_mode():
            node.meta["val"] = torch.empty(spec.shape, dtype=dtype, device="cpu")
        entry = InputSpec(InputKind.PARAMETER, TensorArgument(name=node.name), target=name, persistent=None)
        self.program.graph_signature.input_specs.insert(0, entry)
        self.program.state_dict[name] = torch.nn.Parameter(node.meta["val"], requires_grad=False)
        self._inputs[node.name] = entry
        self.methods.weights[name] = spec
        return node

    def add_constant(self, name: str, value: torch.Tensor) -> Node:
        """Adds a placeholder for a tensor whose value is known at export."""
        self.methods.constants[name] = value
        return self.add_weight(WeightSpec((name,), tuple(value.shape), value.dtype))

    def fake_mode(self):
        for node in self.graph.nodes:
            if isinstance(node.meta.get("val"), FakeTensor):
                return node.meta["val"].fake_mode
        return torch._subclasses.fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)

    # nodes

    def call(self, target: Callable, args: tuple, kwargs: dict[str, Any] | None = None, *, before: Node) -> Node:
        """Inserts a call in front of a node, with that node's origin and the fake value that the op computes."""
        with self.graph.inserting_before(before):
            node = self.graph.call_function(target, args, kwargs or {})
        node.meta.update({key: before.meta[key] for key in ("nn_module_stack", "stack_trace") if key in before.meta})
        self.update_value(node)
        return node

    def update_value(self, node: Node) -> None:
        """Recomputes the fake value of a node from those of its arguments."""
        args, kwargs = map_arg((node.args, node.kwargs), lambda argument: argument.meta["val"])
        with self.fake_mode():
            node.meta["val"] = node.target(*args, **kwargs)

    def replace(self, old: Node, new: Node) -> None:
        old.replace_all_uses_with(new)
        self.graph.erase_node(old)

    def finish(self) -> ExportedProgram:
        """Erases what nothing uses, then checks and compiles the graph."""
        erase_unused(self.program)
        for spec in self.program.graph_signature.output_specs:
            spec.arg = TensorArgument(name=self._output_name(spec))
        self.graph.lint()
        self.program.graph_module.recompile()
        return self.program

    def _output_name(self, spec) -> str:
        position = self.program.graph_signature.output_specs.index(spec)
        return self.graph.output_node().args[0][position].name


def erase_unused(program: ExportedProgram) -> None:
    """Erases calls without users, and placeholders of weights that nothing reads."""
    for node in reversed(list(program.graph.nodes)):
        if node.op == "call_function" and not node.users:
            program.graph.erase_node(node)
    kept = []
    placeholders = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    for spec in program.graph_signature.input_specs:
        node = placeholders[spec.arg.name]
        if spec.kind == InputKind.USER_INPUT or node.users:
            kept.append(spec)
        else:
            program.graph.erase_node(node)
    program.graph_signature.input_specs[:] = kept


def is_call(node: Any, *targets: str) -> bool:
    return isinstance(node, Node) and node.op == "call_function" and str(node.target) in targets


def argument(node: Node, position: int, name: str, default: Any = None) -> Any:
    """An argument that may be given by position or by name."""
    if position < len(node.args):
        return node.args[position]
    return node.kwargs.get(name, default)


def only_user(node: Node) -> Node | None:
    """The one call that uses this node; None if there are more, or if it is an output."""
    users = list(node.users)
    return users[0] if len(users) == 1 and users[0].op == "call_function" else None


def rank(node: Node) -> int:
    return node.meta["val"].dim()


def sizes(node: Node) -> tuple:
    return tuple(node.meta["val"].shape)


def same_shape(a: Node, b: Node) -> bool:
    """Whether two nodes have shapes that are equal for every T."""
    x, y = a.meta["val"].shape, b.meta["val"].shape
    return len(x) == len(y) and all(_expression(i) == _expression(j) for i, j in zip(x, y, strict=True))


def _expression(size: int | torch.SymInt) -> Any:
    return size.node.expr if isinstance(size, torch.SymInt) else size


def is_static(size: int | torch.SymInt) -> bool:
    return not isinstance(size, torch.SymInt) or not size.node.expr.free_symbols
