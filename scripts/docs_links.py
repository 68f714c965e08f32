"""MkDocs hook: links to what lies outside docs/ lead to the repository."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = re.compile(r"\]\(((?:\.\./)+)([^)]*)\)")


def on_page_markdown(markdown: str, page, **_) -> str:
    """Called by MkDocs for every page."""
    depth = page.file.src_uri.count("/") + 1
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    repository = project.get("urls", {}).get("Repository", "..")

    def link(match: re.Match) -> str:
        if len(match[1]) // 3 < depth:
            return match[0]
        return f"]({repository}/blob/main/{match[2]})"

    return OUTSIDE.sub(link, markdown)
