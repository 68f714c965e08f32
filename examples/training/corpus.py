"""Reads the standard library into training and held-out documents."""

from __future__ import annotations

import sysconfig
import tokenize
from dataclasses import dataclass
from pathlib import Path

HELD_OUT = (
    "argparse.py",
    "csv.py",
    "fnmatch.py",
    "heapq.py",
    "json",
    "queue.py",
    "shlex.py",
    "textwrap.py",
)

# Installed packages vary between machines, and test folders hold odd encodings and
# deliberate syntax errors.
_SKIPPED_FOLDERS = {
    "__pycache__",
    "dist-packages",
    "idle_test",
    "pydoc_data",
    "site-packages",
    "test",
    "tests",
}

# Tables of code points and build settings teach a language model nothing about code.
_SKIPPED_PREFIXES = ("_sysconfigdata", "config-", "html/entities")
_TABLE_MARK = "decoding_table = ("


@dataclass(frozen=True)
class Document:
    """One source file: its path below the standard library and its text."""

    path: str
    text: str

    def with_header(self) -> str:
        """Returns the text as the model sees it, opened by a line naming the module."""
        return f"# module: {self.path}\n{self.text}"


def is_held_out(path: str) -> bool:
    """Tells whether a file belongs to a module kept for evaluation."""
    return path.split("/")[0] in HELD_OUT


def read_standard_library(root: Path | None = None) -> list[Document]:
    """Reads every usable source file, in path order.

    root: folder of the library; by default that of the running Python
    Returns: documents with LF line ends, held-out ones included
    """
    root = root or Path(sysconfig.get_path("stdlib"))
    documents = []
    for file in sorted(root.rglob("*.py"), key=lambda file: file.relative_to(root).as_posix()):
        path = file.relative_to(root).as_posix()
        if _SKIPPED_FOLDERS.intersection(path.split("/")) or path.startswith(_SKIPPED_PREFIXES):
            continue
        text = _read(file)
        if text.strip() and _TABLE_MARK not in text:
            documents.append(Document(path, text))
    return documents


def split(documents: list[Document]) -> tuple[list[Document], list[Document]]:
    """Returns the training and the held-out documents."""
    train = [document for document in documents if not is_held_out(document.path)]
    return train, [document for document in documents if is_held_out(document.path)]


def held_out_text(documents: list[Document]) -> str:
    """Joins the held-out documents into the one text that perplexity is measured on."""
    return "\n".join(document.with_header() for document in documents if is_held_out(document.path))


def _read(file: Path) -> str:
    try:
        with tokenize.open(file) as stream:  # honours PEP 263 coding lines
            return stream.read()
    except (SyntaxError, UnicodeDecodeError):
        return ""
