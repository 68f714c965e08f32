"""Tiles hold what docs/file-format.md says, byte for byte, and unpack to what was packed."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_export.program.formats import stored_bytes
from llm_export.program.specs import WeightSpec
from llm_export.quantize.affine import QuantizedWeight
from llm_export.quantize.pack import pack, unpack


def random_matrix(bits, rows, groups, group_size, seed):
    generator = torch.Generator().manual_seed(seed)
    low, high = (0, 2) if bits == 1 else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    codes = torch.randint(low, high, (rows, groups * group_size), generator=generator, dtype=torch.int8)
    multipliers = torch.randint(-127, 128, (rows, groups), generator=generator, dtype=torch.int8)
    return QuantizedWeight(2 * codes - 1 if bits == 1 else codes, multipliers, torch.rand(rows, generator=generator))


@settings(max_examples=60, deadline=None)
@given(
    bits=st.integers(1, 8),
    group_size=st.sampled_from([32, 64, 128, 256]),
    rows=st.integers(1, 50),
    groups=st.integers(1, 5),
    seed=st.integers(0, 2**31),
)
def test_round_trip(bits, group_size, rows, groups, seed):
    weight = random_matrix(bits, rows, groups, group_size, seed)
    blocks = pack(weight, bits)
    spec = WeightSpec(("w",), tuple(weight.codes.shape), torch.int8, bits=bits, group_size=group_size)
    assert blocks.numel() == stored_bytes(spec)
    assert all(torch.equal(a, b) for a, b in zip(unpack(blocks, bits, group_size, rows), weight, strict=True))


def read_as_documented(data, bits, group_size, num_groups, row, column):
    """One weight by the words of docs/file-format.md, in numpy."""
    tile_bytes = 16 * group_size * bits // 8 + 16
    block_bytes = num_groups * tile_bytes + 64
    group, inside = divmod(column, group_size)
    rows = data[row // 16 * block_bytes :][:block_bytes]
    tile = rows[group * tile_bytes :][:tile_bytes]
    r = row % 16
    digits, bit, start = 0, 0, 0
    for p in [p for p in (8, 4, 2, 1) if p & bits]:
        block, rest = divmod(inside, 32 // p)
        h, j = divmod(rest, 4)
        digits += (int(tile[start + 64 * block + 4 * r + j]) >> (p * h)) % 2**p * 2**bit
        bit, start = bit + p, start + 64 * (group_size * p // 32)
    code = 2 * digits - 1 if bits == 1 else digits - 2 ** (bits - 1)
    return code, tile[-16:].view(np.int8)[r], rows[-64:].view(np.float32)[r]


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("group_size", [32, 64, 128, 256])
def test_bytes_lie_where_the_format_says(bits, group_size):
    rows, groups = 37, 3
    weight = random_matrix(bits, rows, groups, group_size, seed=bits * group_size)
    data = pack(weight, bits).flatten().numpy()
    positions = [(r, c) for r in (0, 1, 15, 16, 31, 36) for c in range(0, groups * group_size, 7)]
    for row, column in positions:
        code, multiplier, scale = read_as_documented(data, bits, group_size, groups, row, column)
        assert code == weight.codes[row, column].item()
        assert multiplier == weight.multipliers[row, column // group_size].item()
        assert scale == weight.scales[row].item()


@pytest.mark.parametrize("bits", range(1, 9))
def test_padding_rows_are_zero(bits):
    everything = unpack(pack(random_matrix(bits, 17, 2, 32, seed=1), bits), bits, 32, 32)
    assert not everything.multipliers[17:].any() and not everything.scales[17:].any()
    assert (everything.codes[17:] == (-1 if bits == 1 else 0)).all()
