"""Functions that lower ops, by the names of docs/ops.md."""

from __future__ import annotations

from llm_export.partition.backend import OpTable

OPS = OpTable()
op = OPS.op
