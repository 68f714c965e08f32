"""`make soak` in small: each rule's attack works, and its figures replace those of the same rule on the page."""

from __future__ import annotations

import pytest

from scripts.soak import __main__ as soak
from scripts.soak import faults, mutations, sessions, texts
from scripts.soak.figures import Figure, Size, run


@pytest.fixture(scope="module")
def size(demo_files):
    return Size(seconds=0.1, share=0.003, model=demo_files.path())


@pytest.mark.parametrize(
    "subject",
    [mutations.damaged_checkpoints, texts.ill_formed_text, sessions.cancelling, sessions.limits],
)
def test_the_promises_hold(subject, size):
    figures = subject(size)
    assert figures
    assert all(figure.holds for figure in figures), figures


def test_a_call_of_the_system_that_fails_is_an_error(size, tmp_path):
    library = tmp_path / "failing_calls.so"
    source = faults.ROOT / "scripts" / "soak" / "failing_calls.c"
    assert run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"]).returncode == 0
    figure = faults._runner(tmp_path, library, "read", ["--no-mmap"], size)
    assert figure.holds, figure
    assert int(figure.found.split()[0]) > 3


def test_figures_replace_those_of_the_same_rule(tmp_path, monkeypatch):
    page = tmp_path / "reliability.md"
    page.write_text("| rule | what |\n|---|---|\n| R5 | a | 1 | yes | x |\n| R16 | b | 2 | yes | x |\n\nafter\n")
    monkeypatch.setattr(soak, "PAGE", page)
    soak.write("R7", [Figure("R7", "c", "3", True), Figure("R7", "d", "4", False)])
    soak.write("R5", [Figure("R5", "a", "5", True)])
    rows = [line.split(" | ")[:4] for line in page.read_text().splitlines() if line.startswith("| R")]
    assert rows == [
        ["| R5", "a", "5", "yes"], ["| R7", "c", "3", "yes"], ["| R7", "d", "4", "**no**"], ["| R16", "b", "2", "yes"],
    ]  # fmt: skip
    assert page.read_text().endswith("\n\nafter\n")
