"""mote.h, read as text: what C++ cannot say of itself."""

from __future__ import annotations

import re
from pathlib import Path

from llm_runner import errors
from llm_runner.errors import ERROR_CODES

ROOT = Path(__file__).resolve().parents[2]
HEADER = (ROOT / "runner" / "capi" / "mote.h").read_text()
ENUM = re.compile(r"typedef enum MOTE_ENUM\((\w+)\) \{(.*?)\} (\w+);", re.DOTALL)


def constants() -> dict[str, int]:
    """The constants of all enums."""
    found = {}
    for name, body, type_name in ENUM.findall(HEADER):
        assert name == type_name
        values = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL).replace(" ", "").replace("\n", "")
        for entry in values.rstrip(",").split(","):
            constant, _, value = entry.partition("=")
            assert constant not in found
            found[constant] = int(value)  # every value is written out
    return found


def test_every_enum_has_a_name_of_its_own():
    code = re.sub(r"/\*.*?\*/|#[^\n]*", "", HEADER, flags=re.DOTALL)
    assert len(re.findall(r"\benum\b", code)) == len(ENUM.findall(HEADER)) > 0


def test_every_constant_is_tied_to_the_core():
    tied = (ROOT / "runner" / "capi" / "enums.cpp").read_text()
    tied = re.sub(r"MOTE_ERROR_CASE\((\w+)", r"MOTE_ERROR_\1", tied)
    assert [name for name in constants() if not re.search(rf"\b{name}\b", tied)] == []


def test_the_module_has_all_error_codes_of_the_header():
    of_header = {
        name.removeprefix("MOTE_").removeprefix("ERROR_"): value
        for name, value in constants().items()
        if name == "MOTE_OK" or name.startswith("MOTE_ERROR_")
    }
    assert of_header == ERROR_CODES


def test_every_error_code_has_an_exception():
    for name, code in ERROR_CODES.items():
        error = errors.error_from_code(code, name)
        assert error.code == code and str(error) == name
        assert type(error) is not errors.MoteError or name in ("OK", "INTERNAL")
    assert type(errors.error_from_code(12345, "of a newer library")) is errors.MoteError


def test_what_python_raises_has_the_code_of_its_class():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.MoteError)]
    for kind in kinds:
        assert errors.error_from_code(kind("x").code, "x").__class__ is kind


def test_the_page_shows_the_example_that_is_run():
    example = (ROOT / "examples" / "c" / "complete.c").read_text()
    assert f"```c\n{example}```" in (ROOT / "docs" / "capi.md").read_text()
