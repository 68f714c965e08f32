"""Graph passes: each is a function (ExportedProgram, Methods) -> ExportedProgram that keeps what the graph computes.

A pass may add weights and constants to the Methods: they are a copy that only passes see.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch.export import ExportedProgram

from llm_export.capture.methods import Methods
from llm_export.capture.programs import copy_program
from llm_export.errors import ProgramError
from llm_export.passes.edit import Editor
from llm_export.passes.fold_constants import fold_constants
from llm_export.passes.fold_factors import fold_factors
from llm_export.passes.fold_functions import fold_functions
from llm_export.passes.fold_rms_norm import fold_rms_norm
from llm_export.passes.fuse_activations import fuse_activations
from llm_export.passes.fuse_layer_norm import fuse_layer_norm
from llm_export.passes.fuse_rms_norm import fuse_rms_norm
from llm_export.passes.fuse_rope import fuse_rope
from llm_export.passes.gated_linear import gated_linear
from llm_export.passes.last_position import last_position
from llm_export.passes.linear import canonical_embedding, canonical_experts, canonical_linear
from llm_export.passes.merge_duplicates import merge_duplicates
from llm_export.passes.merge_linears import merge_linears
from llm_export.passes.remove_noops import remove_noops
from llm_export.passes.residual import fuse_residual
from llm_export.passes.rope_table import rope_table
from llm_export.passes.simplify_views import simplify_views
from llm_export.program.instructions import MTP
from llm_export.quantize import Quantized

Pass = Callable[[ExportedProgram, Methods], ExportedProgram]

PASSES: tuple[Pass, ...] = (
    remove_noops,
    merge_duplicates,
    fold_constants,
    fold_functions,
    canonical_embedding,
    canonical_linear,
    canonical_experts,
    simplify_views,
    fuse_layer_norm,
    fuse_rms_norm,
    fuse_activations,
    fuse_rope,
    merge_duplicates,  # the tables that the rope pass made for each layer
    rope_table,
    fold_factors,
    gated_linear,
    merge_linears,
    fuse_residual,
    fold_rms_norm,
)


@dataclass(frozen=True)
class Fused(Methods):
    """What `fuse` returns: the methods in fused `mote::` ops, and the weights that these still read."""


def fuse(quantized: Quantized) -> Fused:
    """Rewrites the graphs into fused `mote::` ops and adds `prefill` to `verify`; what it is given stays as it is."""
    work = Methods({}, quantized.states, dict(quantized.weights), dict(quantized.constants))
    programs = {}
    for name, captured in quantized.programs.items():
        own = Methods({}, quantized.states, dict(quantized.weights), dict(quantized.constants))
        program = copy_program(captured)
        for rewrite in PASSES:
            program = rewrite(program, own)
        if name == "verify":
            programs["prefill"] = last_position(program, own)
        if name in MTP:
            is_read = MTP.index(name) + 1 < sum(method in MTP for method in quantized.programs)
            program = last_position(program, own, keep_others=is_read)
        programs[name] = program
        _add(own, work)
    used = {name for program in programs.values() for name in _weight_names(program, work)}
    weights = {name: spec for name, spec in work.weights.items() if name in used}
    sources = {source for spec in weights.values() for source in spec.sources}
    constants = {name: value for name, value in work.constants.items() if name in sources}
    return Fused(programs, work.states, weights, constants, quantized.max_tokens, quantized.model_type)


def _add(own: Methods, work: Methods) -> None:
    """Adds the weights and constants that the passes made for one method to those of all."""
    for name, spec in own.weights.items():
        if work.weights.setdefault(name, spec) != spec:
            raise ProgramError(f"the passes made two weights of the name {name}")
    for name, value in own.constants.items():
        other = work.constants.setdefault(name, value)
        if other is not value and not (other.shape == value.shape and other.equal(value)):
            raise ProgramError(f"the passes made two constants of the name {name}")


def _weight_names(program: ExportedProgram, methods: Methods) -> set[str]:
    editor = Editor(program, methods)
    names = (editor.weight_name(node) for node in program.graph.find_nodes(op="placeholder"))
    return {name for name in names if name is not None}
