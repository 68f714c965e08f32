import pytest
import torch

from llm_export.passes.fold_constants import fold_constants
from llm_export.passes.fuse_rope import fuse_rope
from llm_export.passes.merge_duplicates import merge_duplicates
from llm_export.passes.remove_noops import remove_noops
from llm_export.passes.rope_table import rope_table
from tests.llm_export.passes.graphs import Captured, module_of

PASSES = (remove_noops, merge_duplicates, fold_constants, fuse_rope, merge_duplicates, rope_table)
INV_FREQ = 1.0 / 10000 ** (torch.arange(0, 32, 2).float() / 32)


def half(x):
    first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-second, first), dim=-1)


def flipped(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((second, -first), dim=-1)


def pairs(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


def angles(m, positions):
    return positions[:, :, None].float() * m.inv_freq[None, None, :]


def doubled(m, positions):
    a = angles(m, positions)
    return torch.cat((a, a), dim=-1)


def repeated(m, positions):
    return angles(m, positions).repeat_interleave(2, dim=-1)


def rotate(turn, table, size=32):
    def forward(m, x, positions):
        emb = table(m, positions)
        cos, sin = (emb.cos() * 1.25)[:, None], (emb.sin() * 1.25)[:, None]
        x = x.view(1, x.shape[1], 4, -1).transpose(1, 2)
        y = x[..., :size] * cos + turn(x[..., :size]) * sin
        return torch.cat((y, x[..., size:]), dim=-1).transpose(1, 2)

    return forward


def by_halves(m, x, positions):
    cos, sin = angles(m, positions).cos()[:, None], angles(m, positions).sin()[:, None]
    x = x.view(1, x.shape[1], 4, 32).transpose(1, 2)
    first, second = torch.chunk(x, 2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def by_parity(m, x, positions):
    cos, sin = (t[:, None][..., :16] for t in (doubled(m, positions).cos(), doubled(m, positions).sin()))
    x = x.view(1, x.shape[1], 4, 32).transpose(1, 2)
    first, second = x[..., ::2], x[..., 1::2]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def by_pairs(m, x, positions):
    cos, sin = angles(m, positions).cos()[:, None], angles(m, positions).sin()[:, None]
    x = x.view(1, x.shape[1], 4, 32).transpose(1, 2)
    first, second = x[..., ::2], x[..., 1::2]
    return torch.stack((first * cos - second * sin, second * cos + first * sin), dim=-1).flatten(-2)


def tokens_first(m, x, positions):
    emb = doubled(m, positions)
    x = x.view(1, x.shape[1], 4, 32)
    return x * emb.cos()[:, :, None] + half(x) * emb.sin()[:, :, None]


def from_first_half(m, x, positions):
    emb = doubled(m, positions)
    cos, sin = (t[:, None][..., :16].repeat_interleave(2, dim=-1) for t in (emb.cos(), emb.sin()))
    x = x.view(1, x.shape[1], 4, 32).transpose(1, 2)
    return x * cos + pairs(x) * sin


CASES = {
    "half": (rotate(half, doubled), "half", "half"),
    "half_flipped": (rotate(flipped, doubled), "half_flipped", "half"),
    "interleaved": (rotate(pairs, repeated), "interleaved", "interleaved"),
    "by halves": (by_halves, "half", "half"),
    "by parity": (by_parity, "half", "half"),
    "by pairs": (by_pairs, "interleaved", "interleaved"),
    "tokens first": (tokens_first, "half", "half"),
    "table of another layout": (from_first_half, "interleaved", "interleaved"),
}


@pytest.mark.parametrize("name", CASES)
def test_rope_is_one_op_over_one_table(name):
    forward, layout, table_layout = CASES[name]
    captured = Captured(module_of(forward, inv_freq=INV_FREQ), (128,))
    ops = captured.apply(*PASSES)
    views = ("aten.view", "aten.transpose", "aten.reshape")
    assert {key: ops[key] for key in ops if not key.startswith(views)} == {
        "mote.rope": 1, "mote.rope_table": 1,
    }  # fmt: skip
    editor = captured.editor()
    assert editor.calls("mote.rope.default")[0].kwargs["layout"] == layout
    assert editor.calls("mote.rope_table.default")[0].kwargs["layout"] == table_layout


@pytest.mark.parametrize("turn,table", [(half, doubled), (pairs, repeated)])
def test_partial_rope_copies_the_rest(turn, table):
    captured = Captured(module_of(rotate(turn, table, 32), inv_freq=INV_FREQ), (4 * 48,))
    ops = captured.apply(*PASSES)
    assert (ops["mote.rope"], ops["mote.rope_table"], ops["aten.cat"], ops["aten.slice"]) == (1, 1, 0, 0)


def test_the_scale_moves_into_the_table():
    captured = Captured(module_of(rotate(half, doubled), inv_freq=INV_FREQ), (128,))
    captured.apply(*PASSES)
    assert captured.editor().calls("mote.rope_table.default")[0].kwargs["scale"] == 1.25


def test_queries_and_keys_share_a_table():
    def forward(m, x, positions):
        q = rotate(half, doubled)(m, x, positions)
        return q + rotate(half, doubled)(m, x.sin(), positions)

    ops = Captured(module_of(forward, inv_freq=INV_FREQ), (128,)).apply(*PASSES)
    assert (ops["mote.rope"], ops["mote.rope_table"]) == (2, 1)


def test_another_sign_is_no_rope():
    def forward(m, x, positions):
        emb = doubled(m, positions)
        x = x.view(1, x.shape[1], 4, 32).transpose(1, 2)
        turned = torch.cat((x[..., 16:], x[..., :16]), dim=-1)
        return x * emb.cos()[:, None] + turned * emb.sin()[:, None]

    assert "mote.rope" not in Captured(module_of(forward, inv_freq=INV_FREQ), (128,)).apply(*PASSES)


def test_tables_that_do_not_follow_from_positions_stay():
    def forward(m, x, positions):
        cos, sin = m.table[positions][:, None], m.table[positions + 1][:, None]
        x = x.view(1, x.shape[1], 4, 32).transpose(1, 2)
        return x * cos + half(x) * sin

    table = torch.randn(64, 32, generator=torch.Generator().manual_seed(0))
    ops = Captured(module_of(forward, table=table), (128,)).apply(*PASSES)
    assert ops["mote.rope"] == 1 and ops["aten.index"] == 2 and "mote.rope_table" not in ops
