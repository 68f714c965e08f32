"""The demo model behind a real server, in a thread of the test process."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import openai
import pytest

from llm_runner import Model
from llm_server import ServerOptions, create_app
from llm_server.serve import listen, uvicorn_server

# Qwen's form: reasoning that the prompt begins unless it is told not to, and tools.
TEMPLATE = (
    "{%- if tools %}{{- '<|im_start|>system\\n' + tools | tojson + '<|im_end|>\\n' }}{%- endif %}"
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content }}"
    "{%- for call in message.tool_calls or [] %}{{- '\\n<tool_call>\\n' + call.function | tojson + '\\n</tool_call>' }}"
    "{%- endfor %}{{- '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- if enable_thinking %}"
    "{{- '<think>\\n' }}{%- endif %}{%- endif %}"
)


@pytest.fixture(scope="session")
def demo_path(demo_files) -> Path:
    given = os.environ.get("MOTE_TEST_DEMO")
    return Path(given) if given else demo_files.path(recipe="none")


@pytest.fixture(scope="session")
def demo(demo_path) -> Model:
    return Model.load(demo_path)


@pytest.fixture(scope="session")
def with_template(demo_path, tmp_path_factory):
    """with_template(source) -> the demo model with another chat template in its file"""
    folder = tmp_path_factory.mktemp("templates")

    def make(template: str) -> Model:
        path = folder / f"{len(list(folder.iterdir()))}.mote"
        write_again(demo_path, path, chat_template=template.encode())
        return Model.load(path)

    return make


@pytest.fixture(scope="session")
def without_tokenizer(demo_path, tmp_path_factory) -> Path:
    """The demo model's file without its tokenizer."""
    path = tmp_path_factory.mktemp("plain") / "plain.mote"
    write_again(demo_path, path, tokenizer=b"", chat_template=b"")
    return path


def write_again(source: Path, path: Path, **metadata) -> None:
    """Writes a file with other metadata."""
    from llm_export.program.writer import write_program
    from tests.llm_export.program_reader import read_program

    file = read_program(source)
    index = {spec.name: i for i, spec in enumerate(file.weights)}
    changed = dataclasses.replace(file.metadata, **metadata)
    write_program(path, file.planned, changed, lambda spec: [file.weight_bytes(index[spec.name])])


WAIT = 300  # seconds after which a test that waits has found a defect, on slow machines too


@dataclass
class Server:
    url: str
    engine: object  # of the first model, to see what it does
    models: object  # all of them

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.url.removeprefix("http://").split(":")
        return host, int(port)

    def openai(self, **options) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", max_retries=0, timeout=WAIT, **{"api_key": "none"} | options)

    def http(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=WAIT)

    def until(self, condition) -> None:
        """Waits for the server's thread."""
        deadline = time.monotonic() + WAIT
        while not condition(self.engine):
            assert time.monotonic() < deadline, "the server did not get there"
            time.sleep(0.005)


@contextlib.contextmanager
def running(model: Model | dict, **options) -> Iterator[Server]:
    """model: one, which is called demo, or several by name"""
    given = {"parallel": 1, "session": {"threads": 1, "context_length": 1024}} | options
    options = ServerOptions(**given)
    app = create_app(model if isinstance(model, dict) else {"demo": model}, options)
    with listen("127.0.0.1", 0) as listening:
        server = uvicorn_server(app, options.limits)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
        thread.start()
        try:
            models = app.state.models
            yield Server(f"http://127.0.0.1:{listening.getsockname()[1]}", models.first.engine, models)
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="session")
def server(demo) -> Iterator[Server]:
    with running(demo) as found:
        yield found


@pytest.fixture(scope="session")
def client(server) -> openai.OpenAI:
    return server.openai()
