"""Lines of a long piece of work: they move by themselves on a terminal, and are not there elsewhere."""

import io
import threading

import pytest

from llm_export.progress import Progress


class Terminal(io.StringIO):
    """Standard error that is a terminal, and tells when it was written to."""

    def __init__(self):
        super().__init__()
        self.drawn = threading.Semaphore(0)

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if "capture" in text:
            self.drawn.release()
        return super().write(text)


def on(stream, monkeypatch):
    """Makes a stream standard error; in the test itself, because pytest sets its own before each."""
    monkeypatch.setattr("sys.stderr", stream)
    return stream


@pytest.mark.parametrize("total", [None, 100])
def test_a_line_moves_while_its_stage_says_nothing(monkeypatch, total):
    terminal = on(Terminal(), monkeypatch)
    assert Progress.INTERVAL_SECONDS <= 0.25
    progress = Progress()
    with progress.stage("capture", total, "B"):
        for _ in range(4):
            assert terminal.drawn.acquire(timeout=30)
    assert progress.seconds["capture"] > 0
    lines = {line for line in terminal.getvalue().split("\r") if "capture" in line}
    assert len(lines) >= 3 and all(" s" in line for line in lines)


def test_nothing_draws_after_the_end_even_of_one_that_failed(monkeypatch):
    on(Terminal(), monkeypatch)
    with pytest.raises(ValueError, match="no"), Progress().stage("capture"):
        raise ValueError("no")
    assert not [thread for thread in threading.enumerate() if "draw" in thread.name]


def test_nothing_where_nobody_looks(monkeypatch):
    stream = on(io.StringIO(), monkeypatch)
    before = threading.active_count()
    with Progress().stage("capture", 10) as bar:
        bar.update(5)
        assert threading.active_count() == before
    assert stream.getvalue() == ""
