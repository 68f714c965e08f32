"""The exporter's table of weight formats is that of the kernels."""

import re
from pathlib import Path

import pytest

from llm_export.program.formats import FORMATS, GROUP_SIZES, WeightFormat

HEADER = (Path(__file__).parents[3] / "kernels" / "formats.h").read_text()


def test_formats_are_those_of_the_kernels():
    rows = re.findall(r"\{(\d+), (-\d+), (\d+), (\d+), \{(\d), (\d), (\d)\}\}", HEADER)
    numbers = [[int(number) for number in row] for row in rows]
    found = [WeightFormat(*n[:4], tuple(p for p in n[4:] if p)) for n in numbers]
    assert found == list(FORMATS.values())
    assert [form.bits for form in found] == list(FORMATS) == list(range(1, 9))


def test_group_sizes_are_those_of_the_kernels():
    (body,) = re.findall(r"bool is_group_size\(int64_t size\) \{ return (.*?); \}", HEADER)
    assert tuple(int(size) for size in re.findall(r"size == (\d+)", body)) == GROUP_SIZES


@pytest.mark.parametrize("form", FORMATS.values(), ids=lambda form: f"{form.bits} bits")
def test_planes_hold_all_bits(form):
    assert sum(form.planes) == form.bits and list(form.planes) == sorted(form.planes, reverse=True)
    assert all(64 * 8 % (16 * width) == 0 for width in form.planes)


def test_tile_of_four_bits_in_groups_of_32():
    assert FORMATS[4].tile_bytes(32) == 272
    assert [FORMATS[bits].tile_bytes(32) for bits in (1, 3, 8)] == [80, 208, 528]
