"""Lines of the C++ core, as records of the logger "mote"."""

from __future__ import annotations

import atexit
import logging
import os

from llm_runner import _core

logger = logging.getLogger("mote")


def forward_to_logging() -> None:
    """Has lines go to the logger, unless MOTE_LOG asks for them on standard error."""
    if os.environ.get("MOTE_LOG"):
        return
    _core.set_log_sink(lambda level, line: logger.log(getattr(logging, level), "%s", line))
    atexit.register(_core.set_log_sink, None)
