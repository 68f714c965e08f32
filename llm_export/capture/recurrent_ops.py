"""The `mote::` ops that keep a recurrent state; docs/ops.md says what each computes."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from llm_export.capture.ops import ReferenceState, define


@define(
    "short_conv(Tensor x, Tensor weight, Tensor? bias=None, *, int state) -> Tensor",
    lambda x, weight, bias=None, *, state: torch.empty(x.shape, dtype=x.dtype, device=x.device),
)
def short_conv(x, weight, bias=None, *, state):
    states = ReferenceState.active()
    channels, size = weight.shape
    past = states.recurrent.get(state, x.new_zeros(1, size - 1, channels))
    inputs = torch.cat((past, x), dim=1)  # [1, size - 1 + T, C]
    states.recurrent[state] = inputs[:, inputs.shape[1] - (size - 1) :]
    return F.conv1d(inputs.transpose(1, 2), weight[:, None], bias, groups=channels).transpose(1, 2).contiguous()
