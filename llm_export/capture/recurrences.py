"""The functions by which transformers' modules mix tokens through a state, replaced by `mote::` ops.

Its classes call their recurrences by a few names that they share, each with the state as an argument that is absent
where there is no cache. So a class that calls one of these names is captured as it is, whichever class it is.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel
from transformers.activations import ACT2FN


@contextlib.contextmanager
def replaced(model: PreTrainedModel, context) -> Iterator[None]:
    """Inside, the modules of `model` that call one of `FUNCTIONS` get ours, which declare their states in `context`."""
    sources = {sys.modules[type(module).__module__] for module in model.modules()}
    originals = [(source, name) for source in sources for name in FUNCTIONS if hasattr(source, name)]
    running: list[nn.Module] = []
    with contextlib.ExitStack() as stack:
        for module in model.modules() if originals else ():
            before = module.register_forward_pre_hook(lambda module, _: running.append(module))
            after = module.register_forward_hook(lambda *_: running.pop() and None)
            stack.callback(before.remove)
            stack.callback(after.remove)
        for source, name in originals:
            stack.callback(setattr, source, name, getattr(source, name))
            setattr(source, name, _bound(FUNCTIONS[name], context, running))
        for module in model.modules():
            if _is_causal_depthwise(module):
                stack.callback(setattr, module, "forward", module.forward)
                module.forward = _convolution(context, module)
        yield


def _is_causal_depthwise(module: nn.Module) -> bool:
    """Whether it is a convolution of each channel with as many zeros before the tokens as it sees of the past."""
    return (
        isinstance(module, nn.Conv1d)
        and module.groups == module.in_channels == module.out_channels
        and module.padding == (module.kernel_size[0] - 1,)
        and module.stride == module.dilation == (1,)
    )


def _convolution(context, module: nn.Conv1d) -> Callable[[Tensor], Tensor]:
    """What it gives for the tokens; callers cut off what it gives beyond them."""
    return lambda x: _causal_conv1d(context, module, x, module.weight.squeeze(1), module.bias)


def shifted(context, module: nn.Module, x: Tensor) -> Tensor:
    """Returns the rows of x [1, T, C] one token later, zeros first."""
    return context.short_conv(module, x, torch.tensor([[1.0, 0.0]] * x.shape[-1]), None)


def _bound(function: Callable, context, running: list[nn.Module]) -> Callable:
    return lambda *args, **kwargs: function(context, running[-1], *args, **kwargs)


def _causal_conv1d(context, module, x: Tensor, weight: Tensor, bias=None, activation=None, **_) -> Tensor:
    """x: [1, C, T]; weight: [C, L]. Returns: [1, C, T]"""
    y = context.short_conv(module, x.transpose(1, 2), weight, bias)
    return (y if activation is None else ACT2FN[activation](y)).transpose(1, 2)


def _gated_delta_rule(
    context, module, query: Tensor, key: Tensor, value: Tensor, g: Tensor, beta: Tensor,
    use_qk_l2norm_in_kernel: bool = False, **_,
) -> tuple[Tensor, None]:  # fmt: skip
    """query, key: [1, T, Hk, N]; value: [1, T, H, P]; g: [1, T, H], or [1, T, H, N]; beta: [1, T, H]."""
    width = query.shape[-1]
    if use_qk_l2norm_in_kernel:
        # x / sqrt(sum(x^2) + eps) is an RMS norm, divided by sqrt(N)
        query, key = (torch.ops.mote.rms_norm(x, None, eps=1e-6 / width) * width**-0.5 for x in (query, key))
    return context.linear_attention(module, query * width**-0.5, key, value, g.exp(), beta), None


def _time_step(dt: Tensor, bias: Tensor | None, softplus: bool) -> Tensor:
    dt = dt if bias is None else dt + bias
    return F.softplus(dt) if softplus else dt


def _mamba2_scan(
    context, module, hidden_states: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, chunk_size=None,
    D=None, dt_bias=None, dt_softplus=False, dt_limit=(0.0, float("inf")), z=None, **_,
) -> Tensor:  # fmt: skip
    """hidden_states: [1, T, H, P]; dt: [1, T, H]; A, D: [H]; B, C: [1, T, groups, N]. Returns: [1, T, H, P]"""
    low, high = (float(limit) for limit in dt_limit)
    dt = _time_step(dt, dt_bias, dt_softplus)
    if low > 0 or high < float("inf"):
        dt = dt.clamp(low, high)
    y = context.linear_attention(module, C, B, hidden_states * dt.unsqueeze(-1), (dt * A).exp())
    if D is not None:
        y = y + hidden_states * D.reshape(-1, 1 if D.dim() == 1 else D.shape[-1])
    return y if z is None else y * F.silu(z)


def _mamba_scan(
    context, module, hidden_states: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, D=None, z=None,
    delta_bias=None, delta_softplus=False, **_,
) -> Tensor:  # fmt: skip
    """hidden_states, dt, z: [1, channels, T]; A: [channels, N]; B, C: [1, N, T]; D: [channels]. Channels are heads."""
    x = hidden_states.transpose(1, 2)
    dt = _time_step(dt.transpose(1, 2), delta_bias, delta_softplus)
    keys, queries = (each.transpose(1, 2).unsqueeze(2) for each in (B, C))
    decay = (dt.unsqueeze(-1) * A).exp()
    y = context.linear_attention(module, queries, keys, (dt * x).unsqueeze(-1), decay).squeeze(-1)
    if D is not None:
        y = y + x * D
    if z is not None:
        y = y * F.silu(z.transpose(1, 2))
    return y.transpose(1, 2)


FUNCTIONS: dict[str, Callable] = {
    "causal_conv1d_fn": _causal_conv1d,
    "chunk_kimi_delta_attention": _gated_delta_rule,
    "mamba2_chunk_scan": _mamba2_scan,
    "mamba_selective_scan": _mamba_scan,
    "torch_chunk_gated_delta_rule": _gated_delta_rule,
}
