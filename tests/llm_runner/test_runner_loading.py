"""Models from files, descriptors and bytes; watched and cancelled loading; lines of the log."""

from __future__ import annotations

import gc
import io
import logging
import mmap
import os
import subprocess
import sys
import weakref

import pytest

from llm_runner import ArgumentError, FileError, Model, ProgramError
from llm_runner.log import forward_to_logging

PROMPT = "def read_lines(path):\n"


def text_of(model: Model) -> str:
    return model.generate(PROMPT, do_sample=False, max_new_tokens=8, threads=1).text()


@pytest.fixture(scope="module")
def expected(demo) -> str:
    return text_of(demo)


@pytest.fixture
def package(demo_path, tmp_path):
    """The model behind 4 KiB and 64 bytes, and behind 10 more where kernels cannot read it in place."""
    path = tmp_path / "package"
    data = demo_path.read_bytes()
    path.write_bytes(bytes(4160) + data + bytes(10) + data + b"end")
    return path, len(data)


def test_a_part_of_an_open_file_is_a_model(package, expected):
    path, size = package
    with open(path, "rb") as file:
        file.seek(5)
        aligned = Model.load(file, offset=4160, length=size)
        assert file.tell() == 5
        unaligned = Model.load(file.fileno(), offset=4170 + size, length=size)
    assert text_of(aligned) == text_of(unaligned) == expected
    assert aligned.path == "" and aligned.describe()["file"] == str(path)


def test_a_whole_open_file_is_a_model(demo_path, expected):
    with open(demo_path, "rb") as file:
        model = Model.load(file, mmap=False)
    assert text_of(model) == expected


def test_a_part_that_is_none_is_refused(package):
    path, size = package
    with open(path, "rb") as file:
        for offset, length, error, message in (
            (path.stat().st_size + 1, None, ArgumentError, "offset = "),
            (-1, None, ArgumentError, "offset = -1"),
            (4160, size * 3, ArgumentError, f"length = {size * 3}"),
            (4160, 0, ProgramError, "the file has 0 bytes"),
            (4160, size - 1, ProgramError, "truncated or appended to"),
            (0, None, ProgramError, "not a .mote file"),
        ):
            with pytest.raises(error, match=message):
                Model.load(file, offset=offset, length=length, name="asset")


def test_what_is_no_open_file_is_refused(demo_path):
    with open(demo_path, "rb") as file:
        pass
    with pytest.raises(ArgumentError, match="the file is not open"):
        Model.load(file)
    read, write = os.pipe()
    try:
        with pytest.raises(FileError, match=f"descriptor {read}: is a named pipe: must be a regular file"):
            Model.load(read)
    finally:
        os.close(read)
        os.close(write)
    with pytest.raises(ArgumentError, match="is not open"):
        Model.load(read)
    with pytest.raises(ArgumentError, match="give its getbuffer"):
        Model.load(io.BytesIO(b"x"))
    for source in (None, True, 1.5, ["x"]):
        with pytest.raises(ArgumentError, match=f"not from {type(source).__name__}"):
            Model.load(source)
    for source in (str(demo_path), b"x"):
        with pytest.raises(ArgumentError, match="offset and length"):
            Model.load(source, offset=0)


def test_bytes_in_memory_are_a_model(demo_path, expected):
    data = demo_path.read_bytes()
    assert text_of(Model.load(data)) == expected
    assert text_of(Model.load(memoryview(b"x" + data)[1:])) == expected
    for damaged in (b"", data[:-1], bytes(100)):
        with pytest.raises(ProgramError, match="assets/a: "):
            Model.load(damaged, name="assets/a")


def test_bytes_are_held_until_the_last_session_is_closed(demo_path):
    class Mapping(mmap.mmap):
        pass

    with open(demo_path, "rb") as file:
        mapping = Mapping(file.fileno(), 0, access=mmap.ACCESS_READ)  # begins at a page, so it is not copied
    held = weakref.ref(mapping)
    model = Model.load(mapping)
    del mapping
    session = model.session(threads=1)
    model.close()
    gc.collect()
    assert held() is not None
    assert len(session.prefill([1, 2, 3])) > 0
    session.close()
    del session, model
    gc.collect()
    assert held() is None


def test_loading_tells_how_far_it_is(demo_path):
    for mmap_it in (True, False):
        fractions: list[float] = []
        Model.load(demo_path, mmap=mmap_it, on_progress=fractions.append)
        assert fractions[0] == 0 and fractions[-1] == 1 and fractions == sorted(fractions)


def test_what_the_callback_raises_ends_the_loading(demo_path, tmp_path):
    class Stop(Exception):
        pass

    def stop(fraction: float) -> None:
        raise Stop(fraction)

    data = demo_path.read_bytes()
    for source in (demo_path, data):
        with pytest.raises(Stop):
            Model.load(source, on_progress=stop, cache_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_session_that_goes_on_gets_no_second_bos(demo):
    with demo.session(threads=1) as session:
        session.append("one")
        ids = session.tokens
        assert ids == demo.tokenize("one")
        session.generate(" two", max_new_tokens=1).text()
        assert session.tokens[len(ids) :][: len(demo.tokenize(" two", add_special_tokens=False))] == demo.tokenize(
            " two", add_special_tokens=False
        )


def lines_of(program: str, **environment: str) -> str:
    rest = {name: value for name, value in os.environ.items() if name != "MOTE_LOG"}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=rest | environment, capture_output=True, text=True, check=True, timeout=120
    )
    return ran.stderr


def test_lines_are_records_of_a_logger_unless_the_environment_asks_for_them(demo_path):
    load = f"from llm_runner import Model; Model.load({str(demo_path)!r})"
    shown = f"import logging; logging.basicConfig(level='INFO', format='<%(name)s %(levelname)s> %(message)s'); {load}"
    assert lines_of(load) == ""
    assert "<mote INFO> " in lines_of(shown)
    assert "mote: " not in lines_of(shown)
    assert "<mote" not in lines_of(shown, MOTE_LOG="info") and "mote: " in lines_of(shown, MOTE_LOG="info")


def test_a_sink_that_raises_does_not_harm(demo_path):
    program = f"""
from llm_runner import Model, _core
def sink(level, line):
    raise ValueError(line)
_core.set_log_sink(sink)
model = Model.load({str(demo_path)!r})
_core.set_log_sink(None)
print(model.generate("a", max_new_tokens=1).text())
"""
    assert "ValueError" in lines_of(program)


def test_the_logger_gets_what_the_core_says(demo_path, caplog, monkeypatch):
    monkeypatch.delenv("MOTE_LOG", raising=False)
    forward_to_logging()
    with caplog.at_level(logging.DEBUG, logger="mote"):
        Model.load(memoryview(b"x" + demo_path.read_bytes())[1:], name="odd")
    assert any("odd: is read into memory: it begins at" in record.getMessage() for record in caplog.records)
