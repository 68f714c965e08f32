"""Headless Chromium, driven over its DevTools pipe."""

from __future__ import annotations

import base64
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
# Kept by every page from its beginning: what its policy has blocked, and what went wrong in its scripts.
WATCH = """
window.faults = [];
addEventListener('securitypolicyviolation', (event) =>
  faults.push(`blocked: ${event.violatedDirective} ${event.blockedURI}`));
addEventListener('error', (event) => event.message && faults.push(event.message));
addEventListener('unhandledrejection', (event) => faults.push(String(event.reason)));
"""
KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38}
MODIFIERS = {"Control": 2, "Shift": 8}


class Browser:
    """The process."""

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

    def page(self) -> Page:
        """Opens a page that shares nothing with the others: no chats, no settings."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, context, session)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
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


class Page:
    """A tab. `evaluate` runs JavaScript in it."""

    def __init__(self, browser: Browser, context: str, session: str):
        self._browser = browser
        self._context = context
        self._session = session
        self.call("Page.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def go(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def reload(self) -> None:
        self.evaluate("window.isOld = true")
        self.call("Page.reload")
        self.until("!window.isOld && document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        """Returns the value, that of a promise once it is there."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str) -> None:
        """Waits until an expression is true; a defect fails the test after half a minute."""
        deadline = time.monotonic() + 30
        while not self._is_true(expression):
            assert time.monotonic() < deadline, (expression, self.evaluate("document.body.innerText"))
            time.sleep(0.02)

    def _is_true(self, expression: str) -> bool:
        # While a page is replaced by another, there is nothing to ask.
        found = self.call("Runtime.evaluate", expression=f"Boolean({expression})", returnByValue=True)
        return "exceptionDetails" not in found and bool(found["result"].get("value"))

    def texts(self, selector: str) -> list[str]:
        return self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)")

    def count(self, selector: str) -> int:
        return self.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")

    def click(self, selector: str) -> None:
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def fill(self, selector: str, text: str) -> None:
        """Replaces the text of a field as a person does."""
        self.evaluate(f"{{ const e = document.querySelector({json.dumps(selector)}); e.focus(); e.select(); }}")
        self.call("Input.insertText", text=text)

    def type(self, text: str) -> None:
        """Types where the focus is."""
        self.call("Input.insertText", text=text)

    def press(self, key: str, *modifiers: str) -> None:
        code = key if key in KEYS else f"Key{key}"
        common = {"key": key, "code": code, "windowsVirtualKeyCode": KEYS.get(key, ord(key[0])),
                  "modifiers": sum(MODIFIERS[name] for name in modifiers)}  # fmt: skip
        self.call("Input.dispatchKeyEvent", type="keyDown", text="\r" if key == "Enter" else "", **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def wheel(self, x: int, y: int, pixels: int) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=pixels)

    def resize(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme: str) -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def choose_file(self, selector: str, *paths) -> None:
        node = self.call("Runtime.evaluate", expression=f"document.querySelector({json.dumps(selector)})")["result"]
        self.call("DOM.setFileInputFiles", objectId=node["objectId"], files=[str(path) for path in paths])

    def accessible(self) -> list[tuple[str, str]]:
        """Returns (role, name) of all that assistive technology is told of."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        shown = [node for node in nodes if not node["ignored"]]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in shown]

    def close(self) -> None:
        faults = self.evaluate("window.faults ?? []")
        self._browser.call("Target.disposeBrowserContext", browserContextId=self._context)
        assert faults == [], faults
