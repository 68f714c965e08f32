"""Functions of a weight alone are computed at export: what a decay is the exponential of."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch.export import ExportedProgram

from llm_export.capture.methods import Methods
from llm_export.passes.edit import Editor

FUNCTIONS = {"aten.exp.default": "exp", "aten.neg.default": "neg"}


def fold_functions(program: ExportedProgram, methods: Methods) -> ExportedProgram:
    editor = Editor(program, methods)
    for node in editor.calls(*FUNCTIONS):
        spec = editor.weight(node.args[0])
        if spec is not None and spec.bits == 0 and spec.dtype.is_floating_point and len(spec.sources) == 1:
            functions = (*spec.functions, FUNCTIONS[str(node.target)])
            editor.replace(node, editor.add_weight(replace(spec, dtype=torch.float32, functions=functions)))
    return editor.finish()
