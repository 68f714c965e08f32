"""What the README says stays true."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from scripts import update_backend_table, update_model_table

ROOT = Path(__file__).resolve().parent.parent.parent


def test_model_table_is_that_of_the_tests():
    page = (ROOT / "docs" / "models.md").read_text()
    assert update_model_table.updated(page) == page, "run: .venv/bin/python scripts/update_model_table.py"


def test_the_readme_counts_as_the_table_does():
    count = re.search(r"^(\d+) types: ", (ROOT / "docs" / "models.md").read_text(), re.MULTILINE)[1]
    assert f"[{count} types](docs/models.md)" in (ROOT / "README.md").read_text()


def test_backend_table_is_that_of_the_code():
    page = (ROOT / "docs" / "backends.md").read_text()
    assert update_backend_table.updated(page) == page, "run: .venv/bin/python scripts/update_backend_table.py"


def test_the_transcript_is_that_of_make_demo():
    printed = subprocess.run(["make", "-n", "-B", "demo"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    transcript = (ROOT / "README.md").read_text().split("<!-- transcript -->")[1]
    commands = re.findall(r"^    \$ (.+)", transcript, re.MULTILINE)
    assert len(commands) == 3
    assert [command for command in commands if command not in printed.replace(".venv/bin/", "")] == []


def test_links_lead_to_files():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"
