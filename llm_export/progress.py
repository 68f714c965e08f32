"""Stages of a long piece of work: bars on a terminal, seconds for each, and the peak of private memory."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm


class PrivateMemory:
    """Samples the anonymous memory of this process while it is open; a context manager."""

    INTERVAL_SECONDS = 0.05

    def __init__(self) -> None:
        self.peak_bytes = 0  # 0 where the system does not tell
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> PrivateMemory:
        self._thread.start()
        return self

    def __exit__(self, *exception) -> None:
        self._stopped.set()
        self._thread.join()
        self.peak_bytes = max(self.peak_bytes, private_bytes())

    def _sample(self) -> None:
        while not self._stopped.wait(self.INTERVAL_SECONDS):
            self.peak_bytes = max(self.peak_bytes, private_bytes())


def private_bytes() -> int:
    """Returns the anonymous memory of this process, 0 where the system does not tell."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class Progress:
    """Shows one line per stage on standard error, a bar where the amount of work is known; nothing unless `show`.

    A line moves also while its stage does not call `update`: a thread draws it again.
    `seconds` holds the time of each finished stage.
    """

    INTERVAL_SECONDS = 0.1

    def __init__(self, show: bool | None = None):
        self._file = sys.stderr  # also while somebody else's prints are kept from it
        self.show = self._file.isatty() if show is None else show
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def stage(self, name: str, total: int | None = None, unit: str = "it") -> Iterator[tqdm]:
        """total: amount of work, None if unknown; call `update` on what is yielded."""
        done = "{desc:<12} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} {unit}"
        style = f"{done} [{{elapsed_s:.1f}} s, {{remaining}} left]" if total else "{desc:<12} {elapsed_s:.1f} s"
        started = time.perf_counter()
        with tqdm(
            total=total, desc=name, unit=unit, unit_scale=True, disable=not self.show, file=self._file,
            bar_format=style, dynamic_ncols=True,
        ) as bar, self._drawing(bar):  # fmt: skip
            yield bar
        self.seconds[name] = time.perf_counter() - started

    @contextlib.contextmanager
    def _drawing(self, bar: tqdm) -> Iterator[None]:
        if not self.show:
            yield
            return
        ended = threading.Event()

        def draw() -> None:
            while not ended.wait(self.INTERVAL_SECONDS):
                bar.refresh()

        thread = threading.Thread(target=draw, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
