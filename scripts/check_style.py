"""Checks the import table of docs/architecture.md and the size budget; prints one line, or what is over."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import lizard

ROOT = Path(__file__).resolve().parent.parent

# folder -> folders of ours that it may include; the longest matching prefix counts.
CPP_ARROWS = {
    "base": {"base"},
    "kernels": {"base", "kernels"},
    "tokenizer": {"base", "tokenizer"},
    "tokenizer/capi": {"base", "tokenizer", "tokenizer/capi"},
    "tokenizer/python": {"tokenizer/capi"},
    "runner/program": {"base", "kernels", "runner/program"},
    "backends": {"base", "kernels", "runner/program", "backends"},
    "runner/llm/chat/jinja": {"base", "runner/llm/chat/jinja"},
    "runner/llm/chat/reply": {"base", "runner/llm/chat/reply"},
    "runner/llm/constraints": {"base", "runner/llm/constraints"},
    "runner/llm": {
        "base", "kernels", "tokenizer", "runner/program", "runner/llm", "runner/llm/chat/jinja",
        "runner/llm/constraints",
    },
    "runner/capi": {"base", "runner/llm", "runner/llm/chat/reply", "runner/llm/constraints", "runner/capi"},
    "runner/cli": {"runner/cli", "runner/capi"},
    "runner/python": {"runner/python", "runner/capi"},
}
# Python package -> packages of ours that it may import.
PYTHON_ARROWS = {
    "backends": {"llm_export"},
    "llm_export": {"llm_export", "llm_runner", "llm_tokenizer"},
    "llm_export/commands": {"llm_export", "llm_runner", "llm_server", "llm_tokenizer"},
    "llm_server": {"llm_runner", "llm_server"},
    "runner/python/llm_runner": {"llm_runner"},
    "tokenizer/python/llm_tokenizer": {"llm_tokenizer"},
}
PYTHON_PACKAGES = {"llm_export", "llm_runner", "llm_server", "llm_tokenizer"}

MAX_FUNCTION_P90 = 30
MAX_FUNCTION_LINES = 60
MAX_FILE_LINES = 500
EXCEPTIONS_FILE = ROOT / "scripts" / "style_exceptions.txt"


def tracked_files(*suffixes: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / line for line in listed.splitlines() if line.endswith(suffixes) and (ROOT / line).exists()]


def folder_of(path: str, table) -> str | None:
    matches = [folder for folder in table if path == folder or path.startswith(folder + "/")]
    return max(matches, key=len) if matches else None


def cpp_violations() -> list[str]:
    found = []
    for path in tracked_files(".cpp", ".h"):
        relative = path.relative_to(ROOT).as_posix()
        folder = folder_of(relative, CPP_ARROWS)
        if folder is None:
            continue
        for included in re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE):
            target = folder_of(included, CPP_ARROWS)
            if target is not None and target not in CPP_ARROWS[folder]:
                found.append(f"{relative}: includes {included}; {folder} may include {sorted(CPP_ARROWS[folder])}")
    return found


def python_violations() -> list[str]:
    found = []
    for path in tracked_files(".py"):
        relative = path.relative_to(ROOT).as_posix()
        folder = folder_of(relative, PYTHON_ARROWS)
        if folder is None:
            continue
        for package in re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), re.MULTILINE):
            if package in PYTHON_PACKAGES and package not in PYTHON_ARROWS[folder]:
                found.append(f"{relative}: imports {package}; {folder} may import {sorted(PYTHON_ARROWS[folder])}")
    return found


def read_exceptions() -> dict[str, str]:
    lines = EXCEPTIONS_FILE.read_text().splitlines() if EXCEPTIONS_FILE.exists() else []
    entries = [line.split(" | ", 1) for line in lines if line.strip() and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, reason in entries}


def size_violations() -> tuple[list[str], str]:
    """Returns what is over the budget and the summary line."""
    exceptions = read_exceptions()
    paths = [path for path in tracked_files(".py", ".cpp", ".h") if "tests/fixtures" not in path.as_posix()]
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
    violations = cpp_violations() + python_violations() + sizes
    for line in violations:
        print(line)
    print(summary)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
