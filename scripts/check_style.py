"""Checks the import table of docs/architecture.md and the size budget; prints one line, or what is over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import import_arrows
import lizard

ROOT = Path(__file__).resolve().parent.parent

MAX_FUNCTION_P90 = 30
MAX_FUNCTION_LINES = 60
MAX_FILE_LINES = 500
EXCEPTIONS_FILE = ROOT / "scripts" / "style_exceptions.txt"


def tracked_files(*suffixes: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / line for line in listed.splitlines() if line.endswith(suffixes) and (ROOT / line).exists()]


def arrow_violations() -> list[str]:
    files = [path.relative_to(ROOT).as_posix() for path in tracked_files(".cpp", ".h", ".mm", ".py")]
    return import_arrows.violations(ROOT, files, (ROOT / import_arrows.PAGE).read_text())


def read_exceptions() -> dict[str, str]:
    lines = EXCEPTIONS_FILE.read_text().splitlines() if EXCEPTIONS_FILE.exists() else []
    entries = [line.split(" | ", 1) for line in lines if line.strip() and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, reason in entries}


def size_violations() -> tuple[list[str], str]:
    """Returns what is over the budget and the summary line."""
    exceptions = read_exceptions()
    paths = [path for path in tracked_files(".py", ".cpp", ".h", ".mm") if "tests/fixtures" not in path.as_posix()]
    found, lengths, long_files = [], [], 0
    for path in paths:
        relative = path.relative_to(ROOT).as_posix()
        num_lines = len(path.read_text().splitlines())
        if num_lines > MAX_FILE_LINES:
            long_files += 1
            if relative not in exceptions:
                found.append(f"{relative}: {num_lines} lines; at most {MAX_FILE_LINES}")
        for function in lizard.analyze_file(str(path)).function_list:
            lengths.append(function.nloc)
            name = f"{relative}:{function.name}"
            if function.nloc > MAX_FUNCTION_LINES and name not in exceptions:
                found.append(f"{name}: {function.nloc} lines; at most {MAX_FUNCTION_LINES}")
    lengths.sort()
    p90 = lengths[int(len(lengths) * 0.9)] if lengths else 0
    if p90 > MAX_FUNCTION_P90:
        found.append(f"function length p90 is {p90}; at most {MAX_FUNCTION_P90}")
    summary = f"style: {len(paths)} files ({long_files} long), {len(lengths)} functions, p90 {p90} lines"
    return found, summary


def main() -> int:
    sizes, summary = size_violations()
    violations = arrow_violations() + sizes
    for line in violations:
        print(line)
    print(summary)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
