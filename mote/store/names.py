"""Names of models: `org/name`, with `@revision`, and with `:tag` where a repository has several files."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

DEFAULT_TAG = "8da4w"
DEFAULT_TAGS = (DEFAULT_TAG, "Q4_K_M")  # which of several files a name without a tag means; the second of GGUF files
_NAME = re.compile(
    r"(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*)(@(?P<revision>[\w.][\w./-]*))?(:(?P<tag>[\w.+][\w./+-]*))?",
    re.ASCII,
)


@dataclass(frozen=True)
class Name:
    """repo: `org/name`   revision: branch, tag or commit; "": the default branch   tag: as for `choose`"""

    repo: str
    revision: str = ""
    tag: str = ""

    def __str__(self) -> str:
        return self.model + (f":{self.tag}" if self.tag else "")

    @property
    def model(self) -> str:
        """The name without its tag."""
        return self.repo + (f"@{self.revision}" if self.revision else "")


def parse_name(text: str) -> Name | None:
    """Returns the name that a text spells, None if it can be none."""
    match = _NAME.fullmatch(text)
    if match is None or ".." in text or match["repo"].endswith((".mote", ".git")):
        return None
    return Name(match["repo"], match["revision"] or "", (match["tag"] or "").removesuffix(".gguf"))


def is_name(text: str) -> bool:
    """Whether an argument that may be a path or a name is a name: paths win."""
    return parse_name(text) is not None and not os.path.exists(text)


def choose(files: Sequence[str], tag: str) -> str | None:
    """Returns the file that a tag means, None if it is none or several.

    tag: the file, its name without .mote, or a word of that; "": the only file, or that of a default tag
    """
    if not tag:
        chosen = (choose(files, default) for default in DEFAULT_TAGS)
        return files[0] if len(files) == 1 else next(filter(None, chosen), None)
    exact = [file for file in files if tag in (file, file.removesuffix(".mote"), PurePosixPath(file).name)]
    word = re.compile(rf"(^|[-_.]){re.escape(tag)}($|[-_.])", re.IGNORECASE)
    found = exact or [file for file in files if word.search(PurePosixPath(file).stem)]
    return found[0] if len(found) == 1 else None
