"""How a file comes to a GPU: its weights, its pipelines, and whether the device is trusted with it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from llm_export.program.flat import parse
from llm_runner import Model
from tests.backends.models import chosen
from tests.backends.parts import ROOT

WEIGHTS = re.compile(r"vulkan: (\d+) bytes of weights are read where the file is mapped, (\d+) take memory")
SUMMED = "sums of rows were computed of"
TRIED = "was tried with this file: set aside"
RUN = """
import sys
from llm_runner import Model
model = Model.load(sys.argv[1], backend="vulkan", mmap=sys.argv[2] == "mmap")
session = model.session(context_length=600, prefill_chunk=512)
for count in (1, 8, 9, 300):
    logits = session.prefill(list(range(5, 5 + count)))
    logits = session.decode(7)
print(" ".join(map(str, logits)))
"""


@pytest.fixture
def model(demo_files, vulkan, tmp_path) -> Path:
    """A file with nothing beside it."""
    return Path(shutil.copy(demo_files.path(backends="vulkan,cpu"), tmp_path / "model.mote"))


def run(path: Path, mode: str = "mmap", **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", RUN, path, mode]
    return subprocess.run(command, env=os.environ | {"MOTE_LOG": "info"} | environment, capture_output=True, text=True)


def beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name}.vulkan-{what}")


def logits_of(done: subprocess.CompletedProcess) -> np.ndarray:
    assert done.returncode == 0, done.stderr
    return np.array(done.stdout.split(), dtype=np.float32)


def test_weights_are_read_where_the_file_is_mapped(model):
    mapped, copied = run(model), run(model, "read")
    assert np.array_equal(logits_of(mapped), logits_of(copied))
    if "llvmpipe" not in mapped.stderr:
        pytest.skip("needs a device that shares the CPU's memory")
    imported, taken = map(int, WEIGHTS.search(mapped.stderr).groups())
    none, all_taken = map(int, WEIGHTS.search(copied.stderr).groups())
    assert none == 0 and imported + taken == pytest.approx(all_taken, rel=0.01)
    assert taken < all_taken / 8  # norms and what was computed of weights


def test_a_file_that_is_cut_off_is_an_error_of_the_call(model):
    script = """
import os, sys
from llm_runner import Model, MoteError
session = Model.load(sys.argv[1], backend="vulkan").session(context_length=64)
session.prefill([5, 6, 7])
os.truncate(sys.argv[1], 1 << 18)
for _ in range(2):
    try:
        session.decode(8)
    except MoteError as error:
        print(error)
"""
    environment = os.environ | {"MOTE_LOG": "info"}
    done = subprocess.run([sys.executable, "-c", script, model], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr  # a GPU may keep the pages that it reads
    assert "llvmpipe" not in done.stderr or done.stdout.count("load it again") == 2, done.stdout


def test_a_second_load_makes_nothing_that_was_kept(model):
    first = run(model)
    kept = [beside(model, what) for what in ("pipelines", "row-sums", "verdict")]
    assert first.returncode == 0 and TRIED in first.stderr and SUMMED in first.stderr, first.stderr
    before = [(file.stat().st_mtime_ns, file.stat().st_ino, file.stat().st_mode & 0o777) for file in kept]
    assert [mode for _, _, mode in before] == [0o600] * 3
    second = run(model)
    assert np.array_equal(logits_of(second), logits_of(first))
    assert all(text not in second.stderr for text in (TRIED, SUMMED, "anew"))
    assert before == [(file.stat().st_mtime_ns, file.stat().st_ino, file.stat().st_mode & 0o777) for file in kept]
    for done in (first, second):
        assert "pipelines" in done.stderr and "is made in a call" not in done.stderr, done.stderr


@pytest.mark.parametrize("what", ["pipelines", "row-sums", "verdict"])
@pytest.mark.parametrize("damage", ["bytes", "short", "empty", "writable", "link", "folder"])
def test_what_is_kept_is_not_trusted(what, damage, model, tmp_path):
    expected = logits_of(run(model))
    file = beside(model, what)
    if damage == "bytes":
        content = bytearray(file.read_bytes())
        content[-1] ^= 0x40
        file.write_bytes(content)
    elif damage in ("short", "empty"):
        file.write_bytes(file.read_bytes()[:-1] if damage == "short" else b"")
    elif damage == "writable":
        file.chmod(0o666)
    else:
        other = Path(shutil.move(file, tmp_path / "elsewhere"))
        file.mkdir() if damage == "folder" else file.symlink_to(other)
    done = run(model)
    assert np.array_equal(logits_of(done), expected)
    assert "anew: " in done.stderr, done.stderr
    assert (TRIED in done.stderr) == (what == "verdict")
    assert (SUMMED in done.stderr) == (what == "row-sums")


def test_a_folder_for_caches_is_used(model, tmp_path):
    folder = tmp_path / "caches"
    folder.mkdir()
    assert run(model, MOTE_CACHE_DIR=str(folder)).returncode == 0
    assert sorted(file.name.rsplit(".", 1)[1] for file in folder.iterdir() if "vulkan" in file.name) == [
        "vulkan-pipelines",
        "vulkan-row-sums",
        "vulkan-verdict",
    ]
    assert not beside(model, "verdict").exists()


@pytest.fixture
def wrong_model(model) -> Path:
    """The same, with other numbers than PyTorch computed: to it, every device is wrong."""
    content = bytearray(model.read_bytes())
    (program_bytes,) = struct.unpack_from("<Q", content, 16)
    logits = parse(bytes(content[64:])).goldenSamples[0].probeLogits
    recorded, other = (np.asarray(each, dtype=np.float32).tobytes() for each in (logits, -np.asarray(logits)))
    assert content.count(recorded) == 1
    content[:] = content.replace(recorded, other)
    struct.pack_into("<I", content, 32, zlib.crc32(content[64 : 64 + program_bytes]))
    model.write_bytes(content)
    return model


def test_a_device_that_is_wrong_is_refused_and_passed_over(wrong_model):
    for attempt in ("first", "second"):
        refused = chosen(wrong_model, "vulkan")
        assert "BackendError" in refused.stderr, refused.stderr
        assert "failed: its logits are not those of PyTorch" in refused.stderr, (attempt, refused.stderr)
        assert str(beside(wrong_model, "verdict")) in refused.stderr
    assert chosen(wrong_model, "auto").stdout == "cpu\n"
    told = Model.load(wrong_model).describe()["targets"]["vulkan"]
    assert "its logits are not those of PyTorch" in told


RUN_BROKEN = ROOT / "build/dev/tests/backends/vulkan/run_broken"
ABOUT_DEVICE = re.compile(r"set aside (\S+); ")


@pytest.mark.parametrize("how", ["wrong", "refused", "hangs"])
@pytest.mark.parametrize("feature", ["dot", "subgroups", "staging"])
def test_one_broken_variant_is_set_aside_alone(feature, how, model):
    if not RUN_BROKEN.exists():
        pytest.skip(f"{RUN_BROKEN} is not built: build the C++ tests")
    environment = os.environ | {"MOTE_LOG": "info"}

    def run_broken(name: str) -> subprocess.CompletedProcess:
        return subprocess.run([RUN_BROKEN, model, name, how], env=environment, capture_output=True, text=True)

    whole = run_broken("nothing")
    assert whole.stdout.startswith("vulkan ") and ABOUT_DEVICE.findall(whole.stderr) == ["none"], whole.stderr
    beside(model, "verdict").unlink()
    first, second = run_broken(feature), run_broken(feature)
    assert first.stdout == whole.stdout and ABOUT_DEVICE.findall(first.stderr) == [feature], first.stderr
    # What was found out is kept.
    assert second.stdout == whole.stdout and "set aside" not in second.stderr, second.stderr


def test_a_device_whose_shaders_see_too_few_buffers_is_refused_and_passed_over(model):
    few = {"MOTE_GPU_LIMITS": "storage_buffers=13"}
    refused = chosen(model, "vulkan", **few)
    assert re.search(r"lets a shader see 13 buffers: must be at least 14; .* take the backend cpu", refused.stderr)
    assert chosen(model, "auto", **few).stdout == "cpu\n"
    assert chosen(model, "vulkan", MOTE_GPU_LIMITS="storage_buffers=14").stdout == "vulkan\n"


def killed_while_it_is_tried(path: Path) -> None:
    command = [sys.executable, "-c", RUN, path, "mmap"]
    environment = os.environ | {"MOTE_LOG": "info"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        for line in process.stderr:
            if b"bytes of weights are read where" in line:
                process.send_signal(signal.SIGKILL)
                break
        process.stderr.read()
        assert process.wait() == -signal.SIGKILL


def test_a_device_that_ends_processes_is_refused(model):
    killed_while_it_is_tried(model)
    once = Path(shutil.copy(beside(model, "verdict"), model.with_name("once")))
    assert "BackendError" not in chosen(model, "vulkan").stderr  # one may have been ended by something else
    shutil.copy(once, beside(model, "verdict"))
    killed_while_it_is_tried(model)
    refused = chosen(model, "vulkan")
    assert "processes that tried it did not come to an end" in refused.stderr, refused.stderr
    beside(model, "verdict").unlink()
    assert chosen(model, "vulkan").stdout == "vulkan\n"


def test_products_are_tuned_on_wish_and_what_was_found_is_kept(model):
    script = """
import sys
from llm_runner import Model
model = Model.load(sys.argv[1], backend="vulkan", tune=sys.argv[2] == "tune")
print(model.session(context_length=64).prefill([5, 6, 7]).argmax(), model.describe()["findings"]["vulkan"])
"""
    found = []
    for tune in ("", "tune", ""):
        command = [sys.executable, "-c", script, model, tune]
        environment = os.environ | {"MOTE_LOG": "info", "MOTE_GPU_FEATURES": "subgroups"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        measured = set(re.findall(r"products (\S+) \S+ of (a token|prompts): \d+\.\d+ ms", done.stderr))
        tried = {(name, of) for name in ("none", "subgroups") for of in ("a token", "prompts")}
        assert measured == (tried if tune else set()), done.stderr
        found.append(done.stdout.split(maxsplit=1))
    assert len({token for token, _ in found}) == 1
    assert "products of a token: " not in found[0][1] and "products of a token: " in found[1][1]
    assert found[2] == found[1]
