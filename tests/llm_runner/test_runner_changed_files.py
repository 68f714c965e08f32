"""Files that change, or become shorter, under a process that uses them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from llm_runner import FileError, Model

PROMPT = "def read_lines(path):\n"


@pytest.fixture
def path(demo_path, tmp_path):
    return shutil.copy(demo_path, tmp_path / "m.mote")


def text_of(model: Model) -> str:
    return model.generate(PROMPT, do_sample=False, max_new_tokens=8, threads=1).text()


def test_a_file_that_is_replaced_or_removed_is_still_used(path, demo_path):
    with Model.load(path) as model:
        before = text_of(model)
        os.replace(shutil.copy(demo_path, f"{path}.new"), path)
        assert text_of(model) == before
        os.unlink(path)
        assert text_of(model) == before


def test_a_shorter_file_is_an_error_of_every_call(path):
    with Model.load(path) as model, model.session(context_length=64) as session:
        session.prefill([1, 2, 3])
        template = model.chat_template
        os.truncate(path, 5000)
        for call in (lambda: model.tokenize("x"), lambda: session.decode(4), lambda: text_of(model)):
            with pytest.raises(FileError, match=rf"{path}: the file (was changed|became shorter)"):
                call()
        assert model.chat_template == template


def test_what_was_read_before_goes_on(path):
    with Model.load(path) as model:
        ids = model.tokenize(PROMPT)
        os.truncate(path, 0)
        assert model.tokenize(PROMPT) == ids


CUT_WHILE_IT_RUNS = """
import faulthandler, os, sys, threading
path, order = sys.argv[1:]
from llm_runner import FileError, Model
if order == "before":
    faulthandler.enable()
model = Model.load(path)
if order == "after":
    faulthandler.enable()
generation = model.generate("x", do_sample=False, ignore_eos=True, max_new_tokens=2000, context_length=2048, threads=2)
next(generation)
threading.Timer(0.02, os.truncate, (path, 0)).start()
try:
    for piece in generation:
        pass
except FileError as error:
    print("FileError", error)
"""


@pytest.mark.parametrize("order", ["before", "after", "never"])
def test_a_file_that_is_cut_while_a_call_runs_does_not_end_the_process(path, order):
    done = subprocess.run([sys.executable, "-c", CUT_WHILE_IT_RUNS, path, order], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"FileError {path}: the file ")


def test_a_host_may_keep_sigbus_for_itself(path):
    code = (
        "import ctypes, signal, sys\nfrom llm_runner import Model\n"
        "model = Model.load(sys.argv[1], sigbus_handler=sys.argv[2] == 'True')\n"
        "lines = open('/proc/self/status').read().splitlines()\n"
        "caught = int(next(line for line in lines if line.startswith('SigCgt')).split()[1], 16)\n"
        "print(bool(caught >> (signal.SIGBUS - 1) & 1))\n"
    )
    for wanted in ("True", "False"):
        done = subprocess.run([sys.executable, "-c", code, path, wanted], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == wanted


@pytest.mark.parametrize("reader", ["Model.load(path)", "session.restore(path)"])
def test_a_named_pipe_is_refused_at_once(demo_path, tmp_path, reader):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = (
        "import sys\nfrom llm_runner import FileError, Model\npath, demo = sys.argv[1:]\n"
        "session = Model.load(demo).session(context_length=16)\n"
        f"try:\n    {reader}\nexcept FileError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, pipe, demo_path], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == f"{pipe}: is a named pipe: must be a regular file", done.stderr


def test_a_session_is_not_saved_over_what_is_no_file(demo, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with demo.session(context_length=16) as session:
        session.prefill([1, 2])
        with pytest.raises(FileError, match="is a named pipe: must be a regular file, or the name of a new one"):
            session.save(pipe)
    assert os.listdir(tmp_path) == ["pipe"]
