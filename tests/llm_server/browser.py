"""Headless Chromium, driven over its DevTools pipe."""

from __future__ import annotations

import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# The browser looks for its pipes there.
AT_3_AND_4 = """
import fcntl, os, sys
high = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 100) for number in sys.argv[1:3]]
os.dup2(high[0], 3)
os.dup2(high[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page. `evaluate` runs JavaScript in it."""

    def __init__(self, profile):
        program = next((path for name in NAMES if (path := shutil.which(name))), None)
        if program is None:
            pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
        from_here, self._out = os.pipe()
        self._in, to_here = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", AT_3_AND_4, str(from_here), str(to_here), program, "--headless=new", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
            pass_fds=(from_here, to_here), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(from_here)
        os.close(to_here)
        self._ids = itertools.count(1)
        self._unread = b""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._call("Page.enable", session=self._session)

    def go(self, url: str) -> None:
        self._call("Page.navigate", session=self._session, url=url)
        self.until("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        found = self._call("Runtime.evaluate", session=self._session, expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str) -> None:
        """Waits until an expression is true; a defect fails the test after five minutes."""
        deadline = time.monotonic() + 300
        while not self.evaluate(expression):
            assert time.monotonic() < deadline, (expression, self.evaluate("document.body.innerText"))
            time.sleep(0.02)

    def type(self, selector: str, text: str) -> None:
        """Types as a person does, with events of the keyboard."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        self._call("Input.insertText", session=self._session, text=text)

    def press_enter(self) -> None:
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", session=self._session, type=kind, key="Enter", code="Enter",
                       windowsVirtualKeyCode=13, text="\r" if kind == "keyDown" else "")  # fmt: skip

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def _call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            assert select.select([self._in], [], [], 60)[0], "the browser does not answer"
            part = os.read(self._in, 65536)
            assert part, "the browser ended"
            self._unread += part
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)
