"""Runs the examples of one page in a folder of their own."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
import traceback
from pathlib import Path

from mote import cli
from tests.docs.blocks import Block, commands_of
from tests.docs.outputs import matches

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
IN_THIS_PROCESS = ("export", "eval", "compare")  # they need PyTorch, which takes seconds to import
TIMEOUT = 300


class PageRunner:
    """Runs blocks one after the other: they share files, Python's names and a server, which `close` ends."""

    def __init__(self, folder: Path, environment: dict[str, str]):
        self._folder = folder
        self._environment = {**os.environ, **environment}
        self._names: dict[str, object] = {"__name__": "__page__"}
        self._printed = ""
        self._server: subprocess.Popen | None = None
        self._address = "127.0.0.1:8080"

    def run(self, block: Block) -> None:
        """Errors: AssertionError with the place in the page and what was printed"""
        run = {"shell": self._shell, "python": self._python, "output": self._output, "json": self._json, "c": self._c}
        run[block.kind](block)

    def close(self) -> None:
        if self._server is not None:
            self._server.terminate()
            self._server.communicate(timeout=TIMEOUT)

    def _shell(self, block: Block) -> None:
        for command, shown in commands_of(block.text):
            words = shlex.split(command, comments=True)
            if words[:2] == ["mote", "serve"]:
                self._serve(words[1:], block)
                continue
            if words[0] == "mote" and words[1] in IN_THIS_PROCESS:
                status, printed = _mote(words[1:])
            else:
                status, printed = self._bash(command)
            assert status == 0, f"{block.place}: {command}\nends with {status}:\n{printed}"
            if shown:
                assert matches(shown, printed), f"{block.place}: {command}\nprints:\n{printed}\nand not:\n{shown}"

    def _bash(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", ADDRESS.sub(self._address, command)],
            cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT,
        )  # fmt: skip
        return done.returncode, done.stdout

    def _serve(self, arguments: list[str], block: Block) -> None:
        """Starts a server at a free port; the address in the examples that follow is then its own."""
        self.close()
        self._server = subprocess.Popen(
            [sys.executable, "-m", "mote.cli", *arguments, "--port", "0"],
            cwd=self._folder, env=self._environment, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        lines = []
        for line in self._server.stderr:
            lines.append(line)
            if found := re.search(rf"at http://({ADDRESS.pattern})/v1", line):
                self._address = found[1]
                return
        raise AssertionError(f"{block.place}: mote {shlex.join(arguments)}\ndoes not serve:\n{''.join(lines)}")

    def _python(self, block: Block) -> None:
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compile(ADDRESS.sub(self._address, block.text), block.place, "exec", flags, dont_inherit=True)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            try:
                result = eval(code, self._names)
                if inspect.iscoroutine(result):
                    asyncio.run(result)
            except Exception as error:
                text = "".join(traceback.format_exception(error))
                raise AssertionError(f"{block.place}: the example raises\n{text}") from error
        self._printed = printed.getvalue()

    def _output(self, block: Block) -> None:
        printed = self._printed
        assert matches(block.text, printed), f"{block.place}: printed is\n{printed}\nand not\n{block.text}"

    def _json(self, block: Block) -> None:
        json.loads(block.text)
        if block.file:
            (self._folder / block.file).write_text(block.text)

    def _c(self, block: Block) -> None:
        source = f'#include <stdio.h>\n#include "mote.h"\n{block.text}'
        command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", "-"]
        command += [f"-I{ROOT / 'runner' / 'capi'}"]
        done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=TIMEOUT)
        assert done.returncode == 0, f"{block.place}: does not compile:\n{done.stderr}"


def _mote(arguments: list[str]) -> tuple[int, str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            cli.main(arguments)
        except SystemExit as end:
            return int(end.code or 0), printed.getvalue()
    return 0, printed.getvalue()
