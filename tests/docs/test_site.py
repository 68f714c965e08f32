"""`make docs`: the site builds, every link in it leads somewhere, and it has a search."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]


def test_the_site_builds_and_has_every_page(tmp_path):
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    built = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, timeout=300
    )
    assert built.returncode == 0, built.stderr
    index = json.loads((site / "search" / "search_index.json").read_text())
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= found | {"index.html"}
    assert not re.search(r"(src|href)=.https?://[^\"]*(googleapis|unpkg|jsdelivr)", (site / "index.html").read_text())


def test_every_page_is_in_the_navigation():
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert sorted(re.findall(r"[\w-]+\.md", yaml.safe_dump(navigation))) == sorted(pages)
