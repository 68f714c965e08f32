"""The command `mote serve` as a process."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys

import httpx
import pytest

COMMAND = [sys.executable, "-m", "mote.cli", "serve"]


def start(path, *options, **environment):
    process = subprocess.Popen(
        [*COMMAND, str(path), "--port", "0", *options], stderr=subprocess.PIPE, text=True, env=environment or None
    )
    lines = []
    for line in process.stderr:
        lines.append(line)
        if found := re.search(r"at (http://\S+)/v1", line):
            return process, found[1], "".join(lines)
    pytest.fail("".join(lines))


def test_it_serves_until_it_is_interrupted(demo_path):
    process, url, printed = start(demo_path, "--model-name", "small", "--context-length", "64", "--threads", "1")
    assert f"small at {url}/v1, chat page at {url}/" in printed
    assert "warning" not in printed
    assert httpx.get(f"{url}/v1/models").json()["data"][0]["context_length"] == 64
    assert "<title>" in httpx.get(url).text
    # One that is under way does not hold the end up.
    body = {"prompt": "x", "ignore_eos": True, "stream": True}
    with httpx.stream("POST", f"{url}/v1/completions", json=body, timeout=300) as response:
        lines = response.iter_lines()
        next(lines)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
    assert process.wait(timeout=300) in (0, 130, -signal.SIGINT)


def test_the_key_may_come_from_the_environment_and_open_servers_warn(demo_path):
    process, url, printed = start(demo_path, "--no-page", "--host", "0.0.0.0", "--threads", "1")
    port = url.rpartition(":")[2]
    assert "anybody who reaches 0.0.0.0" in printed
    assert httpx.get(f"http://127.0.0.1:{port}/").status_code == 404
    process.terminate()
    process.wait(timeout=300)
    process, url, printed = start(demo_path, "--threads", "1", MOTE_API_KEY="secret", PATH="")
    assert httpx.get(f"{url}/v1/models").status_code == 401
    assert httpx.get(f"{url}/v1/models", headers={"Authorization": "Bearer secret"}).status_code == 200
    process.terminate()
    process.wait(timeout=300)


def refusal(*arguments):
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done
    return " ".join(done.stderr.split())


def test_several_models_a_folder_and_their_names(demo_path, tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.mote").symlink_to(demo_path)
    process, url, printed = start(tmp_path, "--threads", "1", "--log-level", "debug")
    assert f"one, two at {url}/v1" in printed
    assert [model["id"] for model in httpx.get(f"{url}/v1/models").json()["data"]] == ["one", "two"]
    assert httpx.post(f"{url}/tokenize", json={"prompt": "x", "speed": 1}).headers["mote-warning"]
    process.terminate()
    log = process.stderr.read()
    process.wait(timeout=300)
    assert "INFO POST /tokenize 200 " in log
    assert "WARNING /tokenize: ignored fields: 'speed'" in log
    assert "is given twice" in refusal(tmp_path, demo_path.parent / demo_path.name, tmp_path / "one.mote")
    assert "is for one model" in refusal(tmp_path, "--model-name", "x")
    (tmp_path / "empty").mkdir()
    assert "has no .mote file" in refusal(tmp_path / "empty")
    assert "--max-memory 1 MiB" in refusal(demo_path, "--max-memory", 1)


def test_a_file_without_a_tokenizer_is_refused(without_tokenizer):
    assert "has no tokenizer" in refusal(without_tokenizer)


def test_bad_options_are_named(demo_path, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"--port {port}: cannot be listened at" in refusal(demo_path, "--port", port)
    assert "nowhere.mote" in refusal(tmp_path / "nowhere.mote", "--port", 0)
    assert "context_length = 10000" in refusal(demo_path, "--port", 0, "--context-length", 10000)
    assert 'kv_dtype = "float8"' in refusal(demo_path, "--port", 0, "--kv-dtype", "float8")
    assert "--parallel" in refusal(demo_path, "--parallel", 0)
    assert "nosuch" in refusal(demo_path, "--port", 0, "--backend", "nosuch")
