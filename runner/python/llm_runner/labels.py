"""What objects say of themselves: parts of their `repr`, which never raises."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any


def count_text(count: int) -> str:
    """Returns a large number as people read it: 596 M."""
    for unit, size in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size:
            return f"{count / size:.{0 if count >= 10 * size else 1}f} {unit}"
    return str(count)


def file_label(path: str) -> str:
    """Returns how a model is called in the `repr` of what belongs to it: the name of its file, in quotes."""
    return repr(os.path.basename(path)) if path else "a model without a file"


def never_raises(text: Callable[[Any], str]) -> Callable[[Any], str]:
    """Makes a `__repr__` of a function that returns what is between the brackets."""

    @functools.wraps(text)
    def safe(self: Any) -> str:
        try:
            return f"<{text(self)}>"
        except Exception:  # an object that is closed or half made must not hide the error that shows it
            return f"<{type(self).__name__}, closed>"

    return safe
