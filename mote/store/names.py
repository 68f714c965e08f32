"""Names of models: `org/name`, with `@revision`, and with `:tag` where a repository has several files."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass

from mote.store.core import core

DEFAULT_TAG = "8da4w"  # which of several files a name without a tag means


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
    if "/" not in text or "\0" in text or not text.isascii():
        return None  # and the core need not be loaded to say so
    parts = json.loads(core().parse_model_name(text))
    return Name(**parts) if parts else None


def is_name(text: str) -> bool:
    """Whether an argument that may be a path or a name is a name: paths win."""
    return parse_name(text) is not None and not os.path.exists(text)


def choose(files: Sequence[str], tag: str) -> str | None:
    """Returns the file that a tag means, None if it is none or several.

    tag: the file, its name without .mote, or a word of that; "": the only file, or that of a default tag
    """
    index = core().choose_model_file(list(files), tag)
    return files[index] if index >= 0 else None
