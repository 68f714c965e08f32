"""The `mote::` op that chooses the keys which attention sees; docs/ops.md says what it computes."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from llm_export.capture.ops import ReferenceState, define


def chosen_count(topk: int, block: int, stride: int) -> int:
    """Returns how many positions `mote::indexer` gives for each token."""
    return topk if stride > 1 else topk * block + block - 1


def _indexer_fake(q, k, positions, weights=None, *, state, topk, block=1, stride=1):
    count = chosen_count(topk, block, stride)
    return torch.empty(1, q.shape[2], k.shape[1], count, dtype=torch.int64, device=q.device)


@define(
    "indexer(Tensor q, Tensor k, Tensor positions, Tensor? weights=None, *, int state, int topk,"
    " int block=1, int stride=1) -> Tensor",
    _indexer_fake,
)
def indexer(q, k, positions, weights=None, *, state, topk, block=1, stride=1):
    states = ReferenceState.active()
    states.append(state, k[0].float(), k[0, ..., :0], int(positions[0, 0]))
    keys = states.caches[state][0]  # [G, N, D]
    queries = q[0].unflatten(0, (keys.shape[0], -1))  # [G, H / G, T, D]
    scores = F.relu(torch.matmul(queries, keys.unsqueeze(1).transpose(2, 3)))
    if weights is not None:
        scores = scores * weights[0].T.unflatten(0, (keys.shape[0], -1)).unsqueeze(-1)
    size = block * stride
    scores = scores.sum(1)[..., size - 1 :: size]  # [G, T, blocks]
    ends = torch.arange(size, (scores.shape[-1] + 1) * size, size)  # positions before the end of each block
    scores = scores.masked_fill(ends > positions[0][:, None] + 1, float("-inf"))
    found = torch.full((*scores.shape[:2], chosen_count(topk, block, stride)), -1)
    for t, end in enumerate((positions[0] + 1).tolist()):
        tail = torch.arange(end // block * block, end) if stride == 1 else torch.arange(0)
        for group in range(scores.shape[0]):
            best = scores[group, t].topk(min(topk, end // size)).indices.sort().values
            of_blocks = best[:, None] * block + torch.arange(block) if stride == 1 else best * stride + stride - 1
            chosen = torch.cat((of_blocks.flatten(), tail))
            found[group, t, found.shape[-1] - chosen.numel() :] = chosen
    return found.transpose(0, 1).unsqueeze(0).contiguous()
