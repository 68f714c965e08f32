"""Every file and folder that the documentation names is there."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]
# A path, or a file name with an ending of ours. `<op>`, `NAME` and `*` stand for any name.
PATH = re.compile(r"[\w.*<>-]+(?:/[\w.*<>-]+)*/?")
SOURCE = re.compile(r"[\w*<>-]+\.(?:cpp|h|py|pyi|fbs|cmake)")
PLACEHOLDER = re.compile(r"<\w+>|(?<![A-Za-z0-9])[A-Z]{2,}(?![A-Za-z0-9.])")
# Names of files that a reader has or writes, or that belong to other projects.
OTHERS = {"llama.cpp"}


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return listed.splitlines()


FILES = tracked()
FOLDERS = {parent.as_posix() for file in FILES for parent in PurePosixPath(file).parents if parent.name}
TOPS = {folder for folder in FOLDERS if "/" not in folder}
PAGES = [file for file in FILES if file.endswith(".md")]


def quoted(text: str) -> Iterator[str]:
    """What stands in backticks in running text."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^    .*$", "", text, flags=re.MULTILINE)
    yield from re.findall(r"`([^`\n]+)`", text)


def tree(text: str) -> Iterator[str]:
    """The names that begin the lines of a README's tree, which is its first indented block."""
    block = re.search(r"^    .*(?:\n(?:    .*|))*", text, re.MULTILINE)
    for line in block[0].splitlines() if block else ():
        names = re.match(r"\s+((?:[\w./*-]+(?:, )?)+?)(?:\s{2,}|$)", line)
        for name in names[1].split(", ") if names else ():
            if SOURCE.fullmatch(name.rpartition("/")[2]) or name.endswith("/"):
                yield name


def exists(name: str, folder: str) -> bool:
    """folder: of the page, where its paths may begin"""
    pattern = PLACEHOLDER.sub("*", name).rstrip("/")
    candidates = [pattern, f"{folder}/{pattern}" if folder else pattern]
    return any(fnmatchcase(known, candidate) for candidate in candidates for known in (*FILES, *FOLDERS))


def missing(page: str) -> list[str]:
    text, folder = (ROOT / page).read_text(), PurePosixPath(page).parent.as_posix().removeprefix(".")
    found = []
    for name in quoted(text):
        if not PATH.fullmatch(name) or name in OTHERS:
            continue
        first = name.split("/")[0]
        is_path = "/" in name and (first in TOPS or (folder and f"{folder}/{first}" in FOLDERS))
        is_name = "/" not in name and SOURCE.fullmatch(name)
        if (is_path and not exists(name, folder)) or (is_name and not exists(name, "") and not exists(f"*/{name}", "")):
            found.append(name)
    if page.endswith("README.md"):
        found += [name for name in tree(text) if not exists(name, folder) and not exists(f"*/{name}", folder)]
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_path_is_there(page):
    assert missing(page) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`runner/llm/session.h`", ["runner/llm/session.h"]),
        ("`kernels/linear/kernels.h` and `base/`", ["kernels/linear/kernels.h"]),
        ("open `gone_for_good.cpp`", ["gone_for_good.cpp"]),
        ("`kernels/ops/<op>/op.cpp`, `backends/NAME/lowering.py`, `kernels/ops/*/`, `op.cpp`, `application/json`", []),
        ("`backends/NAME/gone.py`", ["backends/NAME/gone.py"]),
        ("```\nrunner/gone\n```\n\n    `runner/gone`\n", []),
    ],
)
def test_a_path_that_is_not_there_is_found(text, found, tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "page.md").write_text(text)
    assert missing("page.md") == found


def test_a_tree_names_what_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "base").mkdir()
    (tmp_path / "base/README.md").write_text("# B\n\n    status.h   errors\n    gone.h, log.cpp   lines\n    old/  x\n")
    assert missing("base/README.md") == ["gone.h", "old/"]
