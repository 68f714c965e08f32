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


@define(
    "linear_attention(Tensor q, Tensor k, Tensor v, Tensor? decay=None, Tensor? beta=None, *, int state) -> Tensor",
    lambda q, k, v, decay=None, beta=None, *, state: torch.empty(v.shape, dtype=v.dtype, device=v.device),
)
def linear_attention(q, k, v, decay=None, beta=None, *, state):
    states = ReferenceState.active()
    tokens, heads, width = v.shape[1:]
    q, k = (x[0].repeat_interleave(heads // x.shape[2], dim=1).unsqueeze(-2) for x in (q, k))  # [T, H, 1, N]
    memory = states.recurrent.get(state, v.new_zeros(1, heads, width, k.shape[-1]))[0]
    outputs = []
    for t in range(tokens):
        if decay is not None:
            memory = memory * decay[0, t].reshape(heads, 1, -1)
        update = v[0, t]
        if beta is not None:
            update = beta[0, t].unsqueeze(-1) * (update - (memory * k[t]).sum(-1))
        memory = memory + update.unsqueeze(-1) * k[t]
        outputs.append((memory * q[t]).sum(-1))
    states.recurrent[state] = memory.unsqueeze(0)
    return torch.stack(outputs).unsqueeze(0)
