"""What mote-runner writes: standard output that takes no more, files in the place of which something else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

RUN = ("run", "DEMO", "x", "--greedy", "--ignore-eos", "--max-new-tokens", "8", "--quiet")
VERBS = [
    RUN,
    ("chat", "DEMO", "--greedy", "--max-new-tokens", "4"),
    ("bench", "DEMO", "-p", "4", "-n", "2", "-r", "1"),
    ("inspect", "DEMO"),
    ("inspect", "DEMO", "--json"),
    ("verify", "DEMO"),
    ("render", "DEMO", "-"),
    ("tokenize", "DEMO", "hello"),
    ("--help",),
    ("--version",),
]
MESSAGES = '[{"role": "user", "content": "x"}]'


def words(runner, demo_path, arguments) -> list[str]:
    return [runner, *(str(demo_path) if word == "DEMO" else word for word in arguments)]


def typed(arguments) -> str:
    return MESSAGES if "render" in arguments else "hello\n"


@pytest.mark.parametrize("arguments", VERBS, ids=" ".join)
def test_a_full_disk_is_an_error_with_a_status_of_its_own(runner, demo_path, arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            words(runner, demo_path, arguments), input=typed(arguments), stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 3, done.stderr
    assert done.stderr.endswith("error: standard output cannot be written: No space left on device\n")
    assert "stopped" not in done.stderr and "cancelled" not in done.stderr


# Python, and with it `mote`, ignores SIGPIPE and hands that on to what it starts.
@pytest.mark.parametrize("is_ignored", [False, True])
@pytest.mark.parametrize("arguments", VERBS[:4], ids=" ".join)
def test_a_reader_that_has_gone_ends_it_quietly(runner, demo_path, arguments, is_ignored):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        words(runner, demo_path, arguments),
        input=typed(arguments),
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        restore_signals=not is_ignored,
    )
    os.close(writer)
    assert done.returncode in (-signal.SIGPIPE, 141)
    assert "error" not in done.stderr and "stopped" not in done.stderr and "cancelled" not in done.stderr


@pytest.mark.parametrize("option", ["--profile", "--save-session"])
def test_files_are_not_written_over_what_is_none(runner, demo_path, tmp_path, option):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = subprocess.run([*words(runner, demo_path, RUN), option, pipe], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"{pipe}: is a named pipe: must be a regular file, or the name of a new one" in done.stderr
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_chat_saves_and_loads_regular_files_only(runner, demo_path, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to("chat.json")
    text = f"/save {tmp_path / 'link'}\n/save {pipe}\n/load {pipe}\n"
    arguments = words(runner, demo_path, VERBS[1])
    done = subprocess.run(arguments, input=text, capture_output=True, text=True, timeout=60)
    assert done.stderr.count(f"{pipe}: is a named pipe: must be a regular file") == 2
    assert (tmp_path / "chat.json").is_file() and (tmp_path / "link").is_symlink()
    assert len(os.listdir(tmp_path)) == 3


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_what_others_may_read_follows_the_umask_and_conversations_are_their_owners(runner, demo_path, tmp_path, umask):
    def run(arguments, text=None):
        command = words(runner, demo_path, arguments)
        subprocess.run(command, input=text, text=True, check=True, umask=umask, cwd=tmp_path)

    run(("inspect", "DEMO", "--graph", "graph.json"))
    run((*RUN, "--profile", "trace.json", "--save-session", "a.session"))
    run(("chat", "DEMO", "--greedy", "--max-new-tokens", "4"), "Hello\n/save chat.json\n")
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    shared = 0o666 & ~umask
    assert modes == {"graph.json": shared, "trace.json": shared, "a.session": 0o600, "chat.json": 0o600}


def test_a_process_that_ends_while_it_saves_a_session_leaves_nothing(demo_path, tmp_path):
    code = (
        "import resource, signal, sys\nfrom llm_runner import Model\n"
        "session = Model.load(sys.argv[1]).session(context_length=64)\nsession.prefill([1, 2, 3])\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"  # ends the process in the middle of a write
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500, resource.RLIM_INFINITY))\n"
        "session.save(sys.argv[2])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, demo_path, tmp_path / "a.session"], capture_output=True)
    assert done.returncode == -signal.SIGXFSZ
    assert os.listdir(tmp_path) == []


def test_a_run_that_is_ended_leaves_nothing(runner, demo_path, tmp_path):
    endless = ("run", "DEMO", "x", "--greedy", "--ignore-eos", "--profile", str(tmp_path / "trace.json"))
    arguments = words(runner, demo_path, endless)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(1)
        time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"GGUF" + bytes(100), "it is a GGUF file"),
        (b"<!DOCTYPE html>" + bytes(100), "it is a web page"),
        (b"version https://git-lfs.github.com/spec/v1\n" + bytes(100), "it is a Git LFS pointer"),
    ],
)
def test_says_what_it_was_given_instead_of_a_model(runner, tmp_path, content, says):
    (tmp_path / "x").write_bytes(content)
    done = subprocess.run([runner, "run", tmp_path / "x", "hello"], capture_output=True, text=True)
    assert done.returncode == 2
    assert f"x: not a .mote file: {says}" in done.stderr
