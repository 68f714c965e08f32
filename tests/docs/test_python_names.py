"""docs/python.md names everything that `mote` offers: the list is the module's, not typed here."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import mote

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "python.md").read_text()


def code_of(text: str) -> str:
    return "\n".join(re.findall(r"^```python.*?^```|`[^`\n]+`", text, re.MULTILINE | re.DOTALL))


def section(heading: str) -> str:
    found = re.search(rf"^## `{heading}`$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"there is no section `{heading}`"
    return found[1]


def is_named(name: str, text: str = PAGE) -> bool:
    """Whether the code in a text has the name as a word of its own."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", code_of(text)) is not None


@pytest.mark.parametrize("name", mote.__all__)
def test_a_public_name_is_on_the_page(name):
    assert is_named(name)


@pytest.mark.parametrize("public", ["Model", "Session"])
def test_methods_and_attributes_are_in_the_section_of_their_class(public):
    members = [name for name, _ in inspect.getmembers(getattr(mote, public)) if not name.startswith("_")]
    assert [name for name in members if not is_named(name, section(public))] == []


def test_a_name_that_the_page_lacks_is_found():
    assert is_named("Model") and not is_named("Mode") and not is_named("no_such_name")
    assert not is_named("record", section("Model"))
