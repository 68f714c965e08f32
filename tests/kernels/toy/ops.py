"""`mote::soft_clip`: what an entry of llm_export/capture/ops.py and one of tests/contracts/ops.py are for other ops."""

from __future__ import annotations

import torch
from torch import Tensor

from llm_export.capture.ops import define
from tests.contracts.ops import Case, inputs, normal


@define("soft_clip(Tensor x, Tensor limit, *, float scale) -> Tensor", lambda x, limit, *, scale: x.new_empty(x.shape))
def soft_clip(x: Tensor, limit: Tensor, *, scale: float) -> Tensor:
    return limit * torch.tanh(scale * x / limit)


CASES = [
    Case("soft_clip", "limits of both signs", inputs(normal(2, 3, 8), normal(8)),
         lambda x, limit: limit.double() * (1 - 2 / ((3 * x.double() / limit.double()).exp() + 1)), {"scale": 1.5}),
]  # fmt: skip
