"""The `mote::` torch ops: schema, fake kernel and eager reference. docs/ops.md says what each computes.

The references are float32 and written for clarity; a captured graph runs on them op for op. Ops with a state read and
write the `ReferenceState` that is active.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

import torch
from torch import Tensor
from torch.nn import functional as F

from llm_export.capture.hadamard import hadamard, inverse_hadamard
from llm_export.errors import ArgumentError, ProgramError
from llm_export.program.formats import INPUT_GROUP

library = torch.library.Library("mote", "DEF")

GATES: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
    "sigmoid": torch.sigmoid,
    "identity": lambda x: x,
    "relu_squared": lambda x: F.relu(x).square(),
}


def define(schema: str, fake: Callable) -> Callable[[Callable], Callable]:
    """Registers `mote::<schema>` with its fake kernel; the decorated function is the eager reference."""

    def register(reference: Callable) -> Callable:
        library.define(schema, tags=(torch.Tag.needs_fixed_stride_order,))
        name = schema.split("(", 1)[0]
        library.impl(name, reference, "CompositeExplicitAutograd")
        torch.library.register_fake(f"mote::{name}", fake, lib=library)
        return reference

    return register


class ReferenceState:
    """The caches and recurrent states of one sequence, indexed by an op's `state`; a context manager.

    Positions of a call must follow those in the caches, or go back, which drops the cached positions behind them.
    Recurrent states cannot go back.
    """

    _active: ContextVar[ReferenceState | None] = ContextVar("mote_reference_state", default=None)

    def __init__(self) -> None:
        self.caches: dict[int, tuple[Tensor, Tensor]] = {}  # keys [H, N, D], values [H, N, Dv]
        self.recurrent: dict[int, Tensor] = {}
        self._tokens: list = []

    def __enter__(self) -> ReferenceState:
        self._tokens.append(ReferenceState._active.set(self))
        return self

    def __exit__(self, *exception) -> None:
        ReferenceState._active.reset(self._tokens.pop())

    @classmethod
    def active(cls) -> ReferenceState:
        state = cls._active.get()
        if state is None:
            raise ProgramError("an op with a state was run outside `with ReferenceState():`")
        return state

    def append(self, index: int, keys: Tensor, values: Tensor, first_position: int) -> None:
        """Stores keys [H, T, D] and values [H, T, Dv] from first_position on."""
        if index in self.caches:
            old_keys, old_values = self.caches[index]
            if first_position > old_keys.shape[1]:
                raise ArgumentError(
                    f"position {first_position} leaves a gap: "
                    f"the cache of state {index} holds {old_keys.shape[1]} positions"
                )
            keys = torch.cat([old_keys[:, :first_position], keys], dim=1)
            values = torch.cat([old_values[:, :first_position], values], dim=1)
        elif first_position != 0:
            raise ArgumentError(f"position {first_position} leaves a gap: the cache of state {index} is empty")
        self.caches[index] = (keys, values)


def quantize_activations(x: Tensor) -> Tensor:
    """Rounds each row of x [.., K] as torchao's int8 asymmetric per-token quantization does, and dequantizes."""
    low = x.amin(-1, keepdim=True).clamp(max=0)
    high = x.amax(-1, keepdim=True).clamp(min=0)
    scale = ((high - low) / 255.0).clamp(min=torch.finfo(torch.float32).smallest_normal)
    zero_point = (-128 - torch.round(low / scale)).clamp(-128, 127)
    codes = (torch.round(x * (1.0 / scale)) + zero_point).clamp(-128, 127)
    return (codes - zero_point) * scale


def quantize_symmetrically(x: Tensor) -> Tensor:
    """Rounds each row of x [.., K] to int8 with a scale of its own, the largest magnitude / 127."""
    scale = x.abs().amax(-1, keepdim=True) / 127.0
    scale = torch.where(scale < torch.finfo(torch.float32).smallest_normal, 0.0, scale)
    codes = torch.round(x * torch.where(scale > 0, 1.0 / scale, 0.0)).clamp(-127, 127)
    return codes * scale


def quantize_groups(x: Tensor) -> Tensor:
    """Rounds each 32 columns of x [.., K] symmetrically."""
    return quantize_symmetrically(x.unflatten(-1, (-1, INPUT_GROUP))).flatten(-2)


def round_input(x: Tensor, activations: str) -> Tensor:
    """Does to the input [.., K] of a product what its attribute `activations` says: docs/ops.md."""
    if activations == "float":
        return x
    if activations == "int8":
        return quantize_activations(x)
    if activations == "rotated_int8":
        return quantize_symmetrically(hadamard(x))
    if activations == "grouped_int8":
        return quantize_groups(x)
    raise ArgumentError(f"activations = '{activations}': must be 'float', 'int8', 'rotated_int8' or 'grouped_int8'")


def normed(x: Tensor, norm: str, weight: Tensor | None, eps: float, unit_offset: int) -> Tensor:
    if norm == "rms":
        return rms_norm(x, weight, eps=eps, unit_offset=unit_offset)
    if norm != "none":
        raise ArgumentError(f"norm = '{norm}': must be 'none' or 'rms'")
    if weight is not None:
        raise ArgumentError("norm = 'none': must be 'rms' where norm_weight is given")
    return x


@define(
    "linear(Tensor x, Tensor weight, Tensor? bias=None, Tensor? residual=None, Tensor? norm_weight=None, *,"
    " str activations='float', str norm='none', float norm_eps=0.0, int norm_unit_offset=0) -> Tensor",
    lambda x, weight, *rest, **attributes: x.new_empty(*x.shape[:-1], weight.shape[0]),
)
def linear(
    x, weight, bias=None, residual=None, norm_weight=None, *, activations="float", norm="none", norm_eps=0.0,
    norm_unit_offset=0,
):  # fmt: skip
    x = normed(x, norm, norm_weight, norm_eps, norm_unit_offset)
    y = F.linear(round_input(x, activations), weight, bias)
    return y if residual is None else y + residual


@define(
    "head_linear(Tensor x, Tensor weight, *, str activations='float') -> Tensor",
    lambda x, weight, **attributes: x.new_empty(*x.shape[:-1], weight.shape[1]),
)
def head_linear(x, weight, *, activations="float"):
    return torch.einsum("...hk,hnk->...hn", round_input(x, activations), weight).contiguous()


@define(
    "gated_linear(Tensor x, Tensor weight, Tensor? bias=None, Tensor? norm_weight=None, *, str activations='float',"
    " str function='silu', str norm='none', float norm_eps=0.0, int norm_unit_offset=0) -> Tensor",
    lambda x, weight, *rest, **attributes: x.new_empty(*x.shape[:-1], weight.shape[0] // 2),
)
def gated_linear(
    x, weight, bias=None, norm_weight=None, *, activations="float", function="silu", norm="none", norm_eps=0.0,
    norm_unit_offset=0,
):  # fmt: skip
    x = normed(x, norm, norm_weight, norm_eps, norm_unit_offset)
    gate, up = F.linear(round_input(x, activations), weight, bias).chunk(2, dim=-1)
    return GATES[function](gate) * up


@define(
    "embedding(Tensor ids, Tensor weight, *, int rotated=0) -> Tensor",
    lambda ids, weight, **attributes: weight.new_empty(*ids.shape, weight.shape[1]),
)
def embedding(ids, weight, *, rotated=0):
    rows = F.embedding(ids, weight)
    return inverse_hadamard(rows) if rotated else rows


@define(
    "ngram_ids(Tensor tokens, Tensor previous, Tensor multipliers, *, int[] sizes, int eos) -> Tensor",
    lambda tokens, previous, multipliers, *, sizes, **_: tokens.new_empty(1, tokens.shape[1], len(sizes)),
)
def ngram_ids(tokens, previous, multipliers, *, sizes, eos):
    before = previous.long() * (previous != 0).long().cumprod(-1)  # ends where one is `eos`
    hashes = torch.cat((tokens.unsqueeze(-1), eos + before), dim=-1) * multipliers
    heads, mixed = len(sizes) // previous.shape[-1], hashes[..., 0]
    ids = []
    for index, size in enumerate(sizes):
        if index % heads == 0:
            mixed = mixed ^ hashes[..., index // heads + 1]
        ids.append(mixed.remainder(size) + sum(sizes[:index]))
    return torch.stack(ids, dim=-1)


@define(
    "rms_norm(Tensor x, Tensor? weight, *, float eps, int unit_offset=0) -> Tensor",
    lambda x, weight, *, eps, unit_offset=0: torch.empty(x.shape, dtype=x.dtype, device=x.device),
)
def rms_norm(x, weight, *, eps, unit_offset=0):
    y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return (y if weight is None else y * (weight + unit_offset)).contiguous()


@define(
    "layer_norm(Tensor x, Tensor? weight, Tensor? bias, *, float eps) -> Tensor",
    lambda x, weight, bias, *, eps: torch.empty(x.shape, dtype=x.dtype, device=x.device),
)
def layer_norm(x, weight, bias, *, eps):
    return F.layer_norm(x, (x.shape[-1],), weight, bias, eps).contiguous()


def _rope_table_fake(positions, inv_freq, *, scale=1.0, layout="half"):
    shape = (*positions.shape, 2 * inv_freq.shape[0])
    return inv_freq.new_empty(shape), inv_freq.new_empty(shape)


@define(
    "rope_table(Tensor positions, Tensor inv_freq, *, float scale=1.0, str layout='half') -> (Tensor, Tensor)",
    _rope_table_fake,
)
def rope_table(positions, inv_freq, *, scale=1.0, layout="half"):
    angles = positions[..., None].to(torch.float32) * inv_freq.to(torch.float32)
    angles = torch.cat((angles, angles), -1) if layout == "half" else angles.repeat_interleave(2, dim=-1)
    return angles.cos() * scale, angles.sin() * scale


def rotate(x: Tensor, layout: str) -> Tensor:
    """Returns the quarter turn of x [.., R].

    layout: "half": cat(-x2, x1) of the halves; "half_flipped": its negative; "interleaved": (-x[2i + 1], x[2i])
    """
    if layout == "interleaved":
        return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((second, -first) if layout == "half_flipped" else (-second, first), dim=-1)


@define(
    "rope(Tensor x, Tensor cos, Tensor sin, *, str layout='half') -> Tensor",
    lambda x, cos, sin, *, layout="half": torch.empty(x.shape, dtype=x.dtype, device=x.device),
)
def rope(x, cos, sin, *, layout="half"):
    size = cos.shape[-1]
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    turned = x[..., :size] * cos + rotate(x[..., :size], layout) * sin
    return torch.cat((turned, x[..., size:]), dim=-1)


def _attention_fake(
    q, k, v, positions, sinks=None, alibi_slopes=None, chosen=None, position_bias=None, *, state, scale, **attributes
):
    width = attributes.get("value_dim") or (q.shape[3] if v is None else v.shape[3])
    return q.new_empty(q.shape[0], q.shape[2], q.shape[1], width)


def _attention_lse_fake(q, *rest, **attributes):
    return _attention_fake(q, *rest, **attributes), q.new_empty(q.shape[0], q.shape[2], q.shape[1])


ATTENTION = (
    "(Tensor q, Tensor? k, Tensor? v, Tensor positions, Tensor? sinks=None, Tensor? alibi_slopes=None,"
    " Tensor? chosen=None, Tensor? position_bias=None, *, int state, float scale, int window=0, float softcap=0.0,"
    " int bidirectional=0, int chunked=0, int stride=1, int value_dim=0) -> "
)


@define(f"attention{ATTENTION}Tensor", _attention_fake)
def attention(*operands, **attributes):
    return attention_lse(*operands, **attributes)[0]


@define(f"attention_lse{ATTENTION}(Tensor, Tensor)", _attention_lse_fake)
def attention_lse(
    q, k, v, positions, sinks=None, alibi_slopes=None, chosen=None, position_bias=None, *, state, scale, window=0,
    softcap=0.0, bidirectional=0, chunked=0, stride=1, value_dim=0,
):  # fmt: skip
    states = ReferenceState.active()
    if k is not None:
        stored = k.new_empty(*k.shape[:3], 0) if v is None else v
        states.append(state, k[0].float(), stored[0].float(), int(positions[0, 0]))
    keys, values = states.caches[state]
    values = keys[..., :value_dim] if value_dim else values
    groups = q.shape[1] // keys.shape[0]
    keys, values = keys.repeat_interleave(groups, dim=0), values.repeat_interleave(groups, dim=0)

    scores = torch.matmul(q[0].float(), keys.transpose(1, 2)) * scale  # [H, T, N]
    if softcap:
        scores = torch.tanh(scores / softcap) * softcap
    distance = torch.arange(keys.shape[1]) - positions[0][:, None]  # [T, N], key position - query position
    if alibi_slopes is not None:
        scores = scores + alibi_slopes[:, None, None] * distance
    if position_bias is not None:
        scores = scores + bias_by_distance(position_bias[0].transpose(0, 1), -distance)
    hidden = hidden_keys(distance, positions[0], window, bidirectional, chunked, stride)
    if chosen is not None:
        hidden = hidden | ~is_chosen(chosen[0].transpose(0, 1), keys.shape[1]).repeat_interleave(
            q.shape[1] // chosen.shape[2], dim=0
        )
    scores = scores.masked_fill(hidden, float("-inf"))
    if sinks is not None:
        each = sinks[:, None] if sinks.dim() == 1 else sinks[0].T  # [H, 1 or T]
        scores = torch.cat((scores, each.unsqueeze(-1).expand(-1, scores.shape[1], 1)), dim=-1)
    weights = scores.softmax(-1)[..., : keys.shape[1]].masked_fill(hidden, 0.0)  # 0 of a query that sees no key
    output = torch.matmul(weights, values).transpose(0, 1)[None].to(q.dtype).contiguous()
    return output, scores.logsumexp(-1).T[None].contiguous()


def hidden_keys(
    distance: Tensor, positions: Tensor, window: int, bidirectional: int, chunked: int, stride: int
) -> Tensor:
    """Returns bool [T, N]: which keys a query does not see. distance [T, N]: key position - query position"""
    hidden = torch.zeros_like(distance, dtype=torch.bool) if bidirectional else distance > 0
    keys = torch.arange(distance.shape[1])
    if window and chunked:
        hidden = hidden | (keys // window != positions[:, None] // window)
    elif window:
        hidden = hidden | (distance.abs() >= window)
    return hidden | ((keys + 1) % stride != 0)


def bias_by_distance(bias: Tensor, distance: Tensor) -> Tensor:
    """Returns what bias [H, T, E] adds to the scores of keys that lie distance [T, N] behind; 0 beyond E."""
    extent = bias.shape[-1]
    found = bias.gather(-1, distance.clamp(0, extent - 1).expand(bias.shape[0], -1, -1))
    return found.masked_fill((distance < 0) | (distance >= extent), 0.0)


def is_chosen(chosen: Tensor, count: int) -> Tensor:
    """Returns bool [G, T, count]: whether a position is one of chosen [G, T, K], whose negative entries are none."""
    marked = torch.zeros(*chosen.shape[:2], count + 1, dtype=torch.bool)
    return marked.scatter(-1, torch.where(chosen < 0, count, chosen), True)[..., :count]


def gate_experts(
    y: Tensor, function: str, layout: str, limit: float, alpha: float, gate_softcap: float = 0.0,
    up_softcap: float = 0.0,
) -> Tensor:  # fmt: skip
    """Applies the gate of `mote::moe_experts` to y [.., 2F] (layout `single`: [.., F]). Returns: [.., F]"""
    if layout == "single":
        return GATES[function](y)
    gate, up = y.chunk(2, dim=-1) if layout == "concatenated" else (y[..., ::2], y[..., 1::2])
    if limit:
        gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    if up_softcap:
        up = torch.tanh(up / up_softcap) * up_softcap
    if gate_softcap:
        return torch.tanh(gate / gate_softcap) * gate_softcap * torch.sigmoid(gate) * up
    if alpha:
        return (up + 1) * gate * torch.sigmoid(gate * alpha)
    return GATES[function](gate) * up


def expert_hidden(
    x: Tensor, gate_up: Tensor, bias: Tensor | None, *, activations="float", function="silu", layout="concatenated",
    limit=0.0, alpha=0.0, **softcaps: float,
) -> Tensor:  # fmt: skip
    """Returns what one expert of `mote::moe_experts` gives to its second matrix, [N, F]. x: [N, D]"""
    return gate_experts(
        F.linear(round_input(x, activations), gate_up, bias), function, layout, limit, alpha, **softcaps
    )


@define(
    "moe_experts(Tensor x, Tensor indices, Tensor weights, Tensor gate_up, Tensor down, Tensor? gate_up_bias=None,"
    " Tensor? down_bias=None, *, str activations='float', str function='silu', str layout='concatenated',"
    " float limit=0.0, float alpha=0.0, float gate_softcap=0.0, float up_softcap=0.0) -> Tensor",
    lambda x, *rest, **attributes: torch.empty(x.shape, dtype=x.dtype, device=x.device),
)
def moe_experts(x, indices, weights, gate_up, down, gate_up_bias=None, down_bias=None, *, activations="float", **gate):
    out = torch.zeros_like(x)
    for expert in indices.unique().tolist():
        rows, slots = torch.where(indices == expert)
        bias = None if gate_up_bias is None else gate_up_bias[expert]
        y = expert_hidden(x[rows], gate_up[expert], bias, activations=activations, **gate)
        bias = None if down_bias is None else down_bias[expert]
        y = F.linear(round_input(y, activations), down[expert], bias)
        out.index_add_(0, rows, y * weights[rows, slots, None].to(y.dtype))
    return out


@define(
    "expert_linear(Tensor x, Tensor indices, Tensor weight, *, str activations='float') -> Tensor",
    lambda x, indices, weight, **attributes: x.new_empty(*indices.shape, weight.shape[1]),
)
def expert_linear(x, indices, weight, *, activations="float"):
    x = round_input(x, activations)
    y = x.new_empty(*indices.shape, weight.shape[1])
    for expert in indices.unique().tolist():
        rows, slots = torch.where(indices == expert)
        y[rows, slots] = F.linear(x[rows], weight[expert])
    return y
