"""What holds for all backends that lower by this room."""

from __future__ import annotations

from backends.tensor_ops.lowering import OPS
from tests.backends.tensor_ops.cases import CASES

# Made of nothing, or moves nothing: whole models have them.
ELSEWHERE = {"aten.unsqueeze", "aten.squeeze", "aten.clone", "aten.full", "aten.arange", "aten.max"}


def test_every_op_has_a_case():
    tried = {instruction.op for case in CASES.values() for instruction in case.part.subgraph.method.instructions}
    assert set(OPS) - tried == ELSEWHERE
