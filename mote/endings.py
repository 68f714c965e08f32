"""How the command ends: by a signal, or because what it prints cannot be written."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading

from click.utils import PacifyFlushWrapper

OUTPUT_STATUS = 3  # standard output cannot be written
CLOSED_PIPE_STATUS = 141  # as a shell shows SIGPIPE


def end_on_signals() -> None:
    """Has SIGTERM and SIGHUP end the process as Ctrl-C does: what it has begun to write is removed first.

    A signal that is ignored, as nohup has it, stays so. Signals reach the main thread only.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, frame: object) -> None:
    sys.exit(128 + number)


def output_failure(error: OSError | None = None) -> tuple[int, str] | None:
    """Writes out what is buffered for standard output, and says why that fails.

    error: what a verb ended with, if it did
    Returns: the exit status, and a sentence (empty: nobody read on, which is no error); None: all has arrived, or the
        error was another. After a failure nothing is written any more
    """
    try:
        sys.stdout.flush()
    except OSError as failure:
        error = failure
    else:
        if error is None or not _is_of_output(error):
            return None
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains at its end
    if error.errno == errno.EPIPE:
        return CLOSED_PIPE_STATUS, ""
    return OUTPUT_STATUS, f"standard output cannot be written: {error.strerror}"


def is_pipe_closed() -> bool:
    """Whether click met a standard output that nobody reads, for which it ends the process itself."""
    return isinstance(sys.stdout, PacifyFlushWrapper)


def _is_of_output(error: OSError) -> bool:
    """Whether what failed was to print: such an error has no name of a file, and later flushes succeed."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__") == "click.utils"
