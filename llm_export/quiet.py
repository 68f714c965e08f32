"""Keeps from the user what libraries print and log that is not meant for them."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def quiet_imports() -> Iterator[None]:
    """Inside, nothing below an error is logged: torchao logs which GPU libraries a CPU build cannot load."""
    with _no_logs_up_to(logging.WARNING):
        yield


@contextlib.contextmanager
def prints_in_notes() -> Iterator[None]:
    """Inside, nothing is logged or printed to standard output and error. What was printed becomes a note of the
    exception, if any.

    When torch.export gives up, it prints the graph that it traced. The traceback that --debug shows contains the note.
    """
    printed = io.StringIO()
    with (
        _no_logs_up_to(logging.CRITICAL),
        contextlib.redirect_stderr(printed),
        contextlib.redirect_stdout(printed),
    ):
        try:
            yield
        except Exception as error:
            if printed.getvalue().strip():
                error.add_note(printed.getvalue())
            raise


@contextlib.contextmanager
def _no_logs_up_to(level: int) -> Iterator[None]:
    disabled = logging.root.manager.disable
    logging.disable(max(level, disabled))
    try:
        yield
    finally:
        logging.disable(disabled)
