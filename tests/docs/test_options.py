"""Every option of the library is in a table of its page, with the value that it has unless given."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from llm_runner import describe_options

DOCS = Path(__file__).resolve().parents[2] / "docs"
# The pages that have the options of a scope, in tables whose first column is "option".
PAGES = {
    "generation": ("sampling.md", "constrained-output.md", "speculative-decoding.md"),
    "beam_search": ("sessions.md",),
    "session": ("sessions.md",),
    "model": ("python.md",),
}
HEADER = re.compile(r"\| option \| (?:off|default) \|")
# Depends on the model's tokenizer, so that the table of options has it in words.
IN_WORDS = {"dry_sequence_breakers": 'newline `:` `"` `*`'}


def rows_of(page: str) -> dict[str, str]:
    """Returns the options that the tables of a page name, and the value beside each."""
    found: dict[str, str] = {}
    is_table = False
    for line in page.splitlines():
        is_table = line.startswith("|") and (is_table or HEADER.match(line) is not None)
        if not is_table or HEADER.match(line) or line.startswith("|---"):
            continue
        first, second = (cell.strip() for cell in line.strip("|").split("|")[:2])
        names = re.findall(r"`(\w+)`", first)
        values = second.split(", ") if len(names) > 1 and ", " in second else [second] * len(names)
        assert len(names) == len(values), f"{line}: {len(values)} values of {len(names)} options"
        found |= zip(names, values, strict=True)
    return found


def shown(option: dict) -> set[str]:
    """Returns what may stand for the value of an option that is not given: its default, or what turns it off."""
    default = option["default"]
    text = "none" if default in (None, [], "") else default if isinstance(default, str) else json.dumps(default)
    off = re.search(r"([\d.]+): off", option["accepted"])
    return {IN_WORDS.get(option["name"], text), *(off.groups() if off else ())}


NAMED = {page: rows_of((DOCS / page).read_text()) for pages in PAGES.values() for page in pages}
OPTIONS = {option["name"]: option for option in describe_options()}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_on_its_page(name):
    option = OPTIONS[name]
    found = [NAMED[page][name] for page in PAGES[option["scope"]] if name in NAMED[page]]
    assert len(found) == 1, f"{name}: must be in one table of {', '.join(PAGES[option['scope']])}"
    assert found[0] in shown(option), f"{name}: {found[0]}: must be {' or '.join(shown(option))}"


@pytest.mark.parametrize("page", NAMED)
def test_a_page_names_no_other_options(page):
    assert set(NAMED[page]) <= set(OPTIONS)
    assert NAMED[page]


PAGE = """
| option | off | |
|---|---|---|
| `a`, `b_2` | 0, 1.5 | `c` |
| text; `d` goes on | 1 | |

| x | y |
| `e` | 1 |
"""


def test_tables_are_read():
    assert rows_of(PAGE) == {"a": "0", "b_2": "1.5", "d": "1"}
