"""An instruction for XNNPACK."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from backends.xnnpack.lowering import XnnpackBackend
from tests.backends import parts


class Part(parts.Part):
    def refusal(self) -> str | None:
        return XnnpackBackend().refusal(self.subgraph)

    def run(self, tokens: int, inputs: Sequence[Tensor], weights: str = "int4", **options: bool) -> Tensor:
        return super().run(XnnpackBackend(weights, **options), tokens, inputs)
