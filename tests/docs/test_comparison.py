"""docs/comparison.md: all rows are there, the text counts as the table does, and the evidence can be followed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import mote
from tests.docs.command_check import check, every_flag

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "comparison.md"
NUM_ROWS = 72
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+?) \| (.*?) ?\|$", re.MULTILINE)
ROWS = [match.groups() for match in ROW.finditer(PAGE.read_text())]


def evidence(cell: str) -> Iterator[str]:
    """The links and what stands in backticks; a test is made of words between them."""
    yield from (match[0] for match in re.finditer(r"\[[^]]+\]\([^)]+\)|`[^`]+`", cell))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as Markdown sites make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@cache
def paths_of_the_server() -> set[str]:
    sources = (path.read_text() for path in (ROOT / "llm_server").rglob("*.py"))
    return {found for text in sources for found in re.findall(r'Endpoint\(\s*"\w+", "\w+", "([^"]+)"', text)}


def follow(item: str) -> None:
    """Errors: AssertionError if a link, command, option, path, name of Python or file leads to nothing."""
    if link := re.fullmatch(r"\[[^]]+\]\(([^)#]+)(?:#([^)]+))?\)", item):
        page = PAGE.parent / link[1]
        assert page.is_file(), f"{item}: there is no {link[1]}"
        assert link[2] is None or link[2] in anchors(page), f"{item}: {link[1]} has no heading for it"
        return
    text = item.strip("`")
    if text.startswith("--"):
        assert text in every_flag(), f"{text}: no verb has it"
    elif text.startswith("/"):
        assert text in paths_of_the_server(), f"{text}: no path of the server"
    elif name := re.fullmatch(r"([A-Z][a-z]\w*)\.(\w+)", text):
        assert hasattr(getattr(mote, name[1]), name[2]), f"{text}: mote has no such name"
    elif text == "from mote import Model":
        exec(text, {})
    elif re.match(r"(mote|make|pip|cat) ", text):
        check(text)
    else:
        assert (ROOT / text).is_file(), f"{text}: no command, option, path of the server or file"


def test_every_row_is_there():
    assert [int(number) for number, *_ in ROWS] == list(range(1, NUM_ROWS + 1))
    assert f"\n{NUM_ROWS} things " in PAGE.read_text()


def test_the_text_counts_as_the_table_does():
    answers = [re.split("[,:]", answer)[0] for _, _, answer, _ in ROWS]
    assert set(answers) == {"yes", "no"}, "an answer is yes or no, behind which it may say more"
    num_yes = answers.count("yes")
    assert f"it has {num_yes}." in PAGE.read_text()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_evidence_can_be_followed(row):
    number, _, answer, cell = row
    found = list(evidence(cell))
    assert found or answer.startswith("no"), f"row {number} has no evidence"
    for item in found:
        follow(item)


@pytest.mark.parametrize(
    "item",
    [
        "[x](gone.md)", "[x](serve.md#no-such-heading)", "`--no-such-option`", "`/no/such/path`", "`Model.no_such`",
        "`mote nothing m.mote`", "`mote run m.mote --no-such-option`", "`make nothing`", "`tests/gone.py`", "`gone`",
    ],
)  # fmt: skip
def test_evidence_that_leads_nowhere_is_found(item):
    with pytest.raises(AssertionError):
        follow(item)
