"""Graph passes: each is a function (ExportedProgram, Methods) -> ExportedProgram that keeps what the graph computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torch.export import ExportedProgram

from llm_export.methods import Methods
from llm_export.passes.edit import Editor
from llm_export.passes.last_position import last_position
from llm_export.passes.linear import canonical_embedding, canonical_linear
from llm_export.passes.remove_noops import remove_noops

Pass = Callable[[ExportedProgram, Methods], ExportedProgram]

PASSES: tuple[Pass, ...] = (
    remove_noops,
    canonical_embedding,
    canonical_linear,
)


def run_passes(methods: Methods) -> Methods:
    """Rewrites `verify` into fused `mote::` ops and adds `prefill`.

    methods: as captured, weights already assigned their formats; its graph is rewritten in place, its tables are not.
    Returns: Methods with `prefill` and `verify`, and the weights that these still read.
    """
    result = replace(methods, programs={}, weights=dict(methods.weights), constants=dict(methods.constants))
    program = methods.programs["verify"]
    for rewrite in PASSES:
        program = rewrite(program, result)
    result.programs = {"prefill": last_position(program, result), "verify": program}
    return _without_unused(result)


def _without_unused(methods: Methods) -> Methods:
    used = set()
    for program in methods.programs.values():
        editor = Editor(program, methods)
        used.update(filter(None, (editor.weight_name(node) for node in program.graph.find_nodes(op="placeholder"))))
    weights = {name: spec for name, spec in methods.weights.items() if name in used}
    sources = {source for spec in weights.values() for source in spec.sources}
    constants = {name: value for name, value in methods.constants.items() if name in sources}
    return replace(methods, weights=weights, constants=constants)
