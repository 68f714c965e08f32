"""Cases of the `mote::` ops, each with a result computed without Mote: by torch, by transformers or in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class Case:
    op: str
    name: str
    inputs: Callable[[torch.Generator], list[Tensor | None]]
    expected: Callable[..., Tensor]  # of the inputs
    attributes: dict = field(default_factory=dict)


def normal(*shape: int) -> Callable[[torch.Generator], Tensor]:
    return lambda generator: torch.randn(*shape, generator=generator)


def inputs(*makers) -> Callable[[torch.Generator], list[Tensor | None]]:
    return lambda generator: [maker(generator) if callable(maker) else maker for maker in makers]


def positions(first: int, count: int) -> Tensor:
    return torch.arange(first, first + count)[None]


def sdpa(q, k, v, *_, scale, window=0, groups=1, bidirectional=False) -> Tensor:
    tokens = torch.arange(q.shape[2])
    distance = tokens[:, None] - tokens[None]
    mask = (distance >= 0) & (distance < (window or 1 << 30))
    if bidirectional:
        mask = mask | mask.T
    q, k, v = (t.double() for t in (q, k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale).transpose(1, 2)


def softcapped(q, k, v, *_, scale, softcap) -> Tensor:
    scores = torch.einsum("bhtd,bhnd->bhtn", q.double(), k.double()) * scale
    scores = torch.tanh(scores / softcap) * softcap
    scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    return torch.einsum("bhtn,bhnd->bthd", scores.softmax(-1), v.double())


def with_sinks(q, k, v, _, sinks, *, scale) -> Tensor:
    scores = torch.einsum("bhtd,bhnd->bhtn", q.double(), k.double()) * scale
    weights = scores.exp().tril()
    sinks = sinks.double().exp().reshape(q.shape[1], -1, 1)  # of heads, or of heads and tokens
    weights = weights / (weights.sum(-1, keepdim=True) + sinks)
    return torch.einsum("bhtn,bhnd->bthd", weights, v.double())


def with_alibi(q, k, v, _positions, _sinks, slopes, *, scale) -> Tensor:
    tokens = torch.arange(q.shape[2])
    bias = slopes.double()[:, None, None] * (tokens[None] - tokens[:, None])
    bias = bias.masked_fill(tokens[None] > tokens[:, None], -torch.inf)
    q, k, v = q.double(), k.double(), v.double()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias[None], scale=scale).transpose(1, 2)


def experts(x, indices, weights, gate_up, down, *_) -> Tensor:
    rows = []
    for token in range(x.shape[0]):
        chosen = zip(indices[token].tolist(), weights[token], strict=True)
        outputs = [w * (down[e] @ (F.silu(gate_up[e] @ x[token])[:6] * (gate_up[e] @ x[token])[6:])) for e, w in chosen]
        rows.append(sum(outputs))
    return torch.stack(rows)


def ngram_ids(tokens, previous, _) -> Tensor:
    rows = []
    for token, before in zip(tokens[0].tolist(), previous[0].long().tolist(), strict=True):
        second = 7 + before[0]
        third = 7 + before[1] if before[0] else 7
        pair = _wrapped(3 * token) ^ _wrapped(second * ((1 << 62) - 57))
        rows.append([pair % 5, 5 + pair % 7, 12 + (pair ^ third * 11) % 11, 23 + (pair ^ third * 11) % 13])
    return torch.tensor([rows])


def _wrapped(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def softcapped_experts(x, indices, weights, gate_up, down) -> Tensor:
    out = torch.zeros_like(x)
    for token, slot in torch.cartesian_prod(torch.arange(x.shape[0]), torch.arange(indices.shape[1])):
        expert = indices[token, slot]
        gate, up = (gate_up[expert] @ x[token]).chunk(2)
        hidden = 0.5 * torch.tanh(gate / 0.5) * torch.sigmoid(gate) * 0.7 * torch.tanh(up / 0.7)
        out[token] += weights[token, slot] * (down[expert] @ hidden)
    return out


def masked(q, k, v, mask, scale) -> Tensor:
    q, k, v = q.double(), k.double(), v.double()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale).transpose(1, 2)


def chunked(q, k, v, *_, scale, size) -> Tensor:
    tokens = torch.arange(q.shape[2])
    mask = (tokens[:, None] >= tokens) & (tokens[:, None] // size == tokens // size)
    return masked(q, k, v, mask, scale)


def every_other(generator: torch.Generator) -> Tensor:
    """For each of nine tokens the last three of the positions 0, 2, 4 .. that it may see."""
    rows = [([-1, -1, *range(0, t + 1, 2)])[-3:] for t in range(9)]
    return torch.tensor(rows).view(1, 9, 1, 3)


def chosen(q, k, v, _positions, _sinks, _slopes, positions, *, scale) -> Tensor:
    mask = (positions[0, :, 0, :, None] == torch.arange(q.shape[2])).any(1)
    return masked(q, k, v, mask, scale)


def strided(q, k, v, *_, scale, stride) -> Tensor:
    tokens = torch.arange(q.shape[2])
    mask = (tokens[:, None] >= tokens) & ((tokens + 1) % stride == 0)
    return masked(q, k, v, mask, scale).nan_to_num(0.0)


def biased(q, k, v, _positions, _sinks, _slopes, _chosen, bias, *, scale) -> Tensor:
    tokens = torch.arange(q.shape[2])
    mask = torch.full((q.shape[1], len(tokens), len(tokens)), -torch.inf, dtype=torch.float64)
    for t, p in torch.cartesian_prod(tokens, tokens):
        if p <= t:
            mask[:, t, p] = bias[0, t, :, t - p].double() if t - p < bias.shape[3] else 0.0
    return masked(q, k, v, mask[None], scale)


def chosen_experts(generator: torch.Generator) -> Tensor:
    return torch.stack([torch.randperm(4, generator=generator)[:2] for _ in range(5)])


def complex_rope(x, cos, sin) -> Tensor:
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    turn = torch.complex(cos, sin)[:, None, :, ::2]
    return torch.view_as_real(pairs * turn).flatten(-2)


def gated(y) -> Tensor:
    gate, up = y.chunk(2, dim=-1)
    return F.silu(gate) * up


def cosines(generator: torch.Generator) -> Tensor:
    angles = torch.rand(1, 3, 4, generator=torch.Generator().manual_seed(5))
    return angles.cos().repeat_interleave(2, dim=-1)


def sines(generator: torch.Generator) -> Tensor:
    angles = torch.rand(1, 3, 4, generator=torch.Generator().manual_seed(5))
    return angles.sin().repeat_interleave(2, dim=-1)


QKV = (normal(1, 4, 9, 16), normal(1, 4, 9, 16), normal(1, 4, 9, 16))
CASES = [
    Case("linear", "bias and residual", inputs(normal(3, 8), normal(5, 8), normal(5), normal(3, 5)),
         lambda x, w, b, r: x @ w.T + b + r),
    Case("linear", "rms norm, unit offset, bias and residual",
         inputs(normal(3, 8), normal(5, 8), normal(5), normal(3, 5), normal(8)),
         lambda x, w, b, r, n: F.rms_norm(x.double(), (8,), 1 + n.double(), 1e-3) @ w.double().T + b + r,
         {"norm": "rms", "norm_eps": 1e-3, "norm_unit_offset": 1}),
    Case("linear", "rms norm without weight", inputs(normal(2, 3, 8), normal(5, 8)),
         lambda x, w: F.rms_norm(x.double(), (8,), None, 0.5) @ w.double().T, {"norm": "rms", "norm_eps": 0.5}),
    Case("gated_linear", "rms norm", inputs(normal(3, 8), normal(10, 8), normal(10), normal(8)),
         lambda x, w, b, n: gated(F.rms_norm(x.double(), (8,), n.double(), 1e-3) @ w.double().T + b),
         {"norm": "rms", "norm_eps": 1e-3}),
    Case("gated_linear", "gelu_tanh", inputs(normal(3, 8), normal(10, 8)),
         lambda x, w: F.gelu(x @ w[:5].T, approximate="tanh") * (x @ w[5:].T), {"function": "gelu_tanh"}),
    Case("embedding", "rows", inputs(torch.tensor([[3, 0]]), normal(5, 8)), lambda ids, w: w[ids]),
    Case("ngram_ids", "two and three tokens, beyond the end of a text",
         inputs(torch.tensor([[9, 4, 7, 5, 6]]), torch.tensor([[[0, 0], [2, 0], [-3, 2], [0, -3], [-2, 0]]]).float(),
                torch.tensor([3, (1 << 62) - 57, 11])),
         ngram_ids, {"sizes": [5, 7, 11, 13], "eos": 7}),
    Case("rms_norm", "unit offset", inputs(normal(2, 3, 8), normal(8)),
         lambda x, w: F.rms_norm(x.double(), (8,), 1 + w.double(), 1e-6), {"eps": 1e-6, "unit_offset": 1}),
    Case("layer_norm", "weight and bias", inputs(normal(2, 3, 8), normal(8), normal(8)),
         lambda x, w, b: F.layer_norm(x.double(), (8,), w.double(), b.double(), 1e-5), {"eps": 1e-5}),
    Case("rope", "interleaved is a complex product", inputs(normal(1, 2, 3, 8), cosines, sines), complex_rope,
         {"layout": "interleaved"}),
    Case("attention", "grouped", inputs(normal(1, 4, 9, 16), normal(1, 2, 9, 16), normal(1, 2, 9, 8), positions(0, 9)),
         lambda *a: sdpa(*a, scale=0.3, groups=2), {"scale": 0.3}),
    Case("attention", "window", inputs(*QKV, positions(0, 9)), lambda *a: sdpa(*a, scale=0.25, window=3),
         {"scale": 0.25, "window": 3}),
    Case("attention", "bidirectional", inputs(*QKV, positions(0, 9)),
         lambda *a: sdpa(*a, scale=0.25, bidirectional=True), {"scale": 0.25, "bidirectional": 1}),
    Case("attention", "bidirectional window", inputs(*QKV, positions(0, 9)),
         lambda *a: sdpa(*a, scale=0.25, window=3, bidirectional=True),
         {"scale": 0.25, "window": 3, "bidirectional": 1}),
    Case("attention", "softcap", inputs(*QKV, positions(0, 9)), lambda *a: softcapped(*a, scale=2.0, softcap=5.0),
         {"scale": 2.0, "softcap": 5.0}),
    Case("attention", "sinks", inputs(*QKV, positions(0, 9), normal(4)), lambda *a: with_sinks(*a, scale=0.25),
         {"scale": 0.25}),
    Case("attention", "alibi", inputs(*QKV, positions(0, 9), None, normal(4)), lambda *a: with_alibi(*a, scale=0.25),
         {"scale": 0.25}),
    Case("attention", "chunked", inputs(*QKV, positions(0, 9)), lambda *a: chunked(*a, scale=0.25, size=4),
         {"scale": 0.25, "window": 4, "chunked": 1}),
    Case("attention", "stride", inputs(*QKV, positions(0, 9)), lambda *a: strided(*a, scale=0.25, stride=3),
         {"scale": 0.25, "stride": 3}),
    Case("attention", "chosen", inputs(*QKV, positions(0, 9), None, None, every_other),
         lambda *a: chosen(*a, scale=0.25), {"scale": 0.25}),
    Case("attention", "position bias", inputs(*QKV, positions(0, 9), None, None, None, normal(1, 9, 4, 5)),
         lambda *a: biased(*a, scale=0.25), {"scale": 0.25}),
    Case("attention", "sinks of tokens", inputs(*QKV, positions(0, 9), normal(1, 9, 4)),
         lambda *a: with_sinks(*a[:4], a[4][0].T, scale=0.25), {"scale": 0.25}),
    Case("head_linear", "a matrix of each head", inputs(normal(1, 5, 3, 8), normal(3, 6, 8)),
         lambda x, w: torch.stack([x[:, :, h].double() @ w[h].double().T for h in range(3)], 2)),
    Case("attention", "values in keys", inputs(normal(1, 4, 9, 24), normal(1, 1, 9, 24), None, positions(0, 9)),
         lambda q, k, _, p: sdpa(q, k, k[..., :16], p, scale=0.25, groups=4), {"scale": 0.25, "value_dim": 16}),
    Case("moe_experts", "softcaps", inputs(normal(5, 8), chosen_experts, normal(5, 2), normal(4, 12, 8),
                                           normal(4, 8, 6)),
         softcapped_experts, {"gate_softcap": 0.5, "up_softcap": 0.7}),
    Case("moe_experts", "concatenated", inputs(normal(5, 8), chosen_experts, normal(5, 2), normal(4, 12, 8),
                                               normal(4, 8, 6)), experts),
    Case("expert_linear", "a matrix of each choice", inputs(normal(5, 8), chosen_experts, normal(4, 6, 8)),
         lambda x, chosen, w: torch.einsum("nd,nkmd->nkm", x.double(), w.double()[chosen])),
]  # fmt: skip
