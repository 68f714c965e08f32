"""What a file needs of Mote, and which sources a build for it leaves out."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.size import MOST_MB

ROOT = Path(__file__).resolve().parents[2]


def parts(runner: str, path: Path) -> list[str]:
    done = subprocess.run([runner, "inspect", "--parts", path], check=True, capture_output=True, text=True)
    return done.stdout.split()


@pytest.fixture
def cmake() -> str:
    found = shutil.which("cmake")
    if not found:
        pytest.skip("needs cmake")
    return found


def configure(cmake: str, **options: object) -> tuple[str, str]:
    """What a build with these options leaves out, and the kernels' sources that it has."""
    flags = [f"-D{name}={value}" for name, value in options.items()]
    done = subprocess.run([cmake, *flags, "-P", ROOT / "tests" / "parts.cmake"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    left_out, kept = (line.split(": ", 1)[1] for line in done.stderr.splitlines() if ": " in line)
    return left_out, kept


def test_a_file_names_the_parts_that_its_quantised_linears_and_tokenizer_take(runner, demo_files):
    found = parts(runner, demo_files.path())
    assert {"mote.linear", "linear.codes", "weights.4", "templates", "tokenizer.bpe"} <= set(found)
    assert found == sorted(found)
    others = ("grammars.", "linear.groups", "tokenizer.unigram", "backends.")
    assert not [part for part in found if part.startswith(others)]


def test_float_weights_take_no_products_with_tiles(runner, demo_path):
    assert not [part for part in parts(runner, demo_path) if part.startswith(("linear.", "weights."))]


def test_another_backend_is_a_part(runner, demo_files):
    for backend, recipe in (("xnnpack", "8da4w"), ("vulkan", "8da4w"), ("qnn", "4w")):
        assert f"backends.{backend}" in parts(runner, demo_files.path(recipe, backends=f"{backend},cpu"))


def test_a_build_for_a_file_has_its_ops_and_no_others(cmake, runner, demo_files):
    left_out, kept = configure(cmake, MOTE_FOR=demo_files.path(), MOTE_RUNNER=runner)
    assert not set(left_out.split(";")) & set(parts(runner, demo_files.path()))
    for part in ("aten.sort", "weights.3", "grammars.lark", "tokenizer.regex", "sessions.files", "adapters"):
        assert part in left_out.split(";")
    assert "/attention/op.cpp" in kept
    assert "/codes_stream_int8.cpp" in kept
    assert "/sort/op.cpp" not in kept
    assert "/groups_int8.cpp" not in kept


def test_a_list_of_parts_serves_as_well_as_the_file(cmake, runner, demo_files, tmp_path):
    listed = tmp_path / "demo.parts"
    listed.write_text("\n".join(parts(runner, demo_files.path())))
    assert configure(cmake, MOTE_FOR=listed) == configure(cmake, MOTE_FOR=demo_files.path(), MOTE_RUNNER=runner)


def test_further_parts_are_built_on_wish(cmake, tmp_path):
    listed = tmp_path / "small.parts"
    listed.write_text("mote.linear\n")
    left_out, kept = configure(cmake, MOTE_FOR=listed, MOTE_PARTS="grammars;sessions;aten.sort")
    assert "grammars." not in left_out
    assert "sessions." not in left_out
    assert "aten.sort" not in left_out
    assert "/sort/op.cpp" in kept


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"MOTE_FOR": "nowhere.mote"}, "nowhere.mote: there is no such file"),
        ({"MOTE_PARTS": "grammar"}, "there is no part grammar"),
        ({"MOTE_FOR": "unknown.parts"}, "these sources have no part mote.unknown"),
    ],
)
def test_refuses_what_it_does_not_know(cmake, tmp_path, options, message):
    (tmp_path / "known.parts").write_text("mote.linear\n")
    (tmp_path / "unknown.parts").write_text("mote.linear\nmote.unknown\n")
    options = {"MOTE_FOR": "known.parts", **options}
    options["MOTE_FOR"] = tmp_path / options["MOTE_FOR"]
    flags = [f"-D{name}={value}" for name, value in options.items()]
    done = subprocess.run([cmake, *flags, "-P", ROOT / "tests" / "parts.cmake"], capture_output=True, text=True)
    assert done.returncode != 0
    assert message in " ".join(done.stderr.split())


def test_without_options_nothing_is_left_out(cmake):
    left_out, kept = configure(cmake)
    assert left_out == ""
    assert "/sort/op.cpp" in kept


def test_the_page_knows_every_part_and_its_sizes_keep_the_bars():
    page = (ROOT / "docs/size.md").read_text()
    parts = re.findall(r'"([a-z_.0-9]+)\|', (ROOT / "cmake/MoteParts.cmake").read_text())
    assert len(parts) > 20
    named = re.sub(r"`weights.1` to `weights.8`", " ".join(f"`weights.{i}`" for i in range(1, 9)), page)
    for room in ("tokenizer", "grammars", "sessions"):
        named = re.sub(rf"(?m)^\| `{room}.*$", lambda row, room=room: row[0].replace("`.", f"`{room}."), named)
    assert [part for part in parts if f"`{part}`" not in named] == []
    *rows, every_part, library = re.search(r"<!-- sizes -->\n\n(.*)\n\n<!-- end", page, re.DOTALL)[1].splitlines()[2:]
    columns = [[int(cell) for cell in row.split("|")[2:-1]] for row in (*rows, every_part, library)]
    for size, most in zip(columns.pop(), MOST_MB.values(), strict=True):
        assert size <= most * 1000
    for total, sizes in zip(columns.pop(), zip(*columns, strict=True), strict=True):
        assert abs(sum(sizes) - total) <= len(sizes)


def test_the_core_has_no_streams_whose_languages_weigh_more_than_what_reads_a_file():
    rooms = ("base", "kernels", "tokenizer", "runner", "backends", "apps/android/mote/src/main/cpp")
    sources = [path for room in rooms for path in (ROOT / room).rglob("*") if path.suffix in (".h", ".cpp")]
    core = [path for path in sources if not re.search(r"runner/cli/|/python/", path.as_posix())]
    assert len(core) > 300
    streams = re.compile(r"^#include <(fstream|iostream|sstream|iomanip|locale|regex)>", re.MULTILINE)
    assert [path.relative_to(ROOT).as_posix() for path in core if streams.search(path.read_text())] == []
