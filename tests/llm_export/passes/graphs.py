"""Small modules as captured graphs, for tests of one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import InputKind

import llm_export.capture.ops  # noqa: F401  (registers mote::)
from llm_export.capture.methods import Methods
from llm_export.checkpoint.parts import Part
from llm_export.passes.edit import Editor
from llm_export.program.specs import WeightSpec
from tests.llm_export.eager import materialize


class Captured:
    """A module of x [1, T, ..] and positions int64 [1, T], exported as `verify` on fake weights."""

    def __init__(self, module: nn.Module, x_shape: tuple[int, ...] = (64,), **weight_fields):
        generator = torch.Generator().manual_seed(0)
        for parameter in module.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator) * 0.3
            parameter.requires_grad_(False)
        self.module, self.x_shape = module, x_shape
        self.state = {name: value.detach() for name, value in module.state_dict(keep_vars=True).items()}
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        with mode:
            fake = {
                name: nn.Parameter(torch.empty_like(p), requires_grad=False) for name, p in module.named_parameters()
            }
        real = dict(module.named_parameters())
        self._assign(fake)
        with mode:
            inputs = (torch.zeros(1, 7, *x_shape), torch.arange(7)[None])
        program = torch.export.export(module, inputs, dynamic_shapes=({1: Dim.DYNAMIC}, {1: Dim.DYNAMIC}), strict=False)
        program = program.run_decompositions({})
        self._assign(real)
        self.methods = self._methods(program, weight_fields)

    def _assign(self, parameters: dict[str, nn.Parameter]) -> None:
        for name, parameter in parameters.items():
            owner, _, leaf = name.rpartition(".")
            self.module.get_submodule(owner)._parameters[leaf] = parameter

    def _methods(self, program: ExportedProgram, weight_fields: dict) -> Methods:
        weights, constants = {}, {}
        buffers = dict(self.module.named_buffers())
        for spec in program.graph_signature.input_specs:
            if spec.kind == InputKind.PARAMETER:
                value = self.state[spec.target]
                weights[spec.target] = WeightSpec((spec.target,), tuple(value.shape), value.dtype, **weight_fields)
            elif spec.kind != InputKind.USER_INPUT:
                value = buffers.get(spec.target, program.constants.get(spec.target)).detach()
                weights[spec.target] = WeightSpec((spec.target,), tuple(value.shape), value.dtype)
                constants[spec.target] = value
        return Methods({"verify": program}, [], weights, constants)

    def apply(self, *passes: Callable) -> Counter:
        """Runs the passes, checks that the result is the module's for several T, and counts the ops."""
        for rewrite in passes:
            self.methods.programs["verify"] = rewrite(self.methods.programs["verify"], self.methods)
        for num_tokens in (2, 5):
            torch.testing.assert_close(self.run(num_tokens), self.expected(num_tokens), rtol=1e-5, atol=1e-5)
        return self.ops()

    def inputs(self, num_tokens: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(num_tokens)
        x = torch.randn(1, num_tokens, *self.x_shape, generator=generator)
        return x, torch.arange(3, 3 + num_tokens)[None]

    def expected(self, num_tokens: int) -> Tensor:
        with torch.no_grad():
            return self.module(*self.inputs(num_tokens))

    def run(self, num_tokens: int) -> Tensor:
        program = self.methods.programs["verify"]
        user = iter(self.inputs(num_tokens))
        arguments = [
            next(user) if spec.kind == InputKind.USER_INPUT
            else materialize(self.methods.weights[spec.target], self.methods, self.read)
            for spec in program.graph_signature.input_specs
        ]  # fmt: skip
        return program.graph_module(*arguments)[0]

    def read(self, name: str) -> Tensor:
        part = Part.of(name)
        return self.state[name] if part is None else part.take(self.state[part.source])

    def ops(self) -> Counter:
        graph = self.methods.programs["verify"].graph
        names = [str(node.target).rsplit(".", 1)[0] for node in graph.nodes if node.op == "call_function"]
        return Counter(name for name in names if "sym_size" not in name and "getitem" not in name)

    def editor(self) -> Editor:
        return Editor(self.methods.programs["verify"], self.methods)


def module_of(forward: Callable, **parts) -> nn.Module:
    """A module with the parameters, buffers and submodules in `parts`, and forward(module, x, positions)."""
    module = nn.Module()
    for name, part in parts.items():
        if isinstance(part, Tensor) and not isinstance(part, nn.Parameter):
            module.register_buffer(name, part, persistent=False)
        else:
            setattr(module, name, part)
    module.forward = lambda x, positions: forward(module, x, positions)
    return module
