"""Numbers as people read them."""

from __future__ import annotations


def human_bytes(count: int) -> str:
    """Returns a size in decimal units: 4.7 MB."""
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"
