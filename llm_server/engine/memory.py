"""How much memory the server may use."""

from __future__ import annotations

import os
from pathlib import Path

SHARE = 0.8  # of what is available at the start


def memory_bound() -> int:
    """Returns the bytes that models may take unless --max-memory says so."""
    return int(SHARE * available_bytes())


def available_bytes() -> int:
    """Returns the memory that processes can get without swapping, or, where nothing says so, half of what there is."""
    found = [bytes for bytes in (_of_machine(), _of_group()) if bytes is not None]
    return max(min(found), 0) if found else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _of_machine() -> int | None:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _of_group() -> int | None:
    """The rest of a container's limit (version 2 of control groups); what its files have in memory can be freed."""
    limit, used = _lines("/sys/fs/cgroup/memory.max"), _lines("/sys/fs/cgroup/memory.current")
    if not limit or not used or not limit[0].isdigit():
        return None
    statistics = dict(line.split() for line in _lines("/sys/fs/cgroup/memory.stat"))
    return int(limit[0]) - int(used[0]) + int(statistics.get("inactive_file", 0))


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
