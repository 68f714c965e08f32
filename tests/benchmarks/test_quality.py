"""The quality board: rows in order, a plot of the same bytes, bits counted with their scales."""

import pytest

from benchmarks import quality, quality_plot
from benchmarks.quality import Row, mote_bits, parse, table

ROWS = [
    Row("Mote", "8da4w", 4.9, 90_000_000, 25.0, 0.33, 0.71),
    Row("llama.cpp", "Q4_0", 5.0, 91_000_000, 26.0, 0.35, 0.70),
    Row("Mote", "8da4w --calibration", 4.9, 90_000_000, 22.0, 0.19, 0.78),
]


def test_the_table_begins_with_the_nearest():
    lines = table(ROWS).splitlines()
    assert [line.split("|")[2].strip() for line in lines[2:]] == ["`8da4w --calibration`", "`8da4w`", "`Q4_0`"]
    assert "| 4.90 | 90.0 MB | 22.000 | 0.1900 | 78.0% |" in lines[2]


def test_calibrated_files_have_a_mark_of_their_own():
    report = {"model": "m", "rows": [vars(row) for row in ROWS]}
    assert list(quality_plot.series(report)) == ["Mote", "Mote, calibrated", "llama.cpp"]


def test_the_plot_has_the_same_bytes_each_time(tmp_path):
    pytest.importorskip("matplotlib")
    report = {"model": "m", "rows": [vars(row) for row in ROWS]}
    for name in ("a.svg", "b.svg"):
        quality_plot.draw(report, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes() != b""


def test_bits_count_scales(demo_files):
    assert 5 < mote_bits(demo_files.path("8da4w")) < 7  # a third of the demo model is its table of 8 bits


def test_recipes_that_are_given_replace_the_list(tmp_path):
    assert parse(["--text", "x", "--recipe", "4w"]).recipe == ["4w"]
    assert parse(["--text", "x"]).recipe == list(quality.RECIPES)
