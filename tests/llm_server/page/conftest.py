"""A page of its own for each test."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from llm_server.page.routes import BUNDLE
from tests.llm_server.browser import Browser, Page
from tests.llm_server.fake_server import FakeServer, fake_server

IDLE = "document.getElementById('stop').hidden"


@dataclass
class Chat:
    """A page before a server, and what people do with it."""

    page: Page
    server: FakeServer

    def ask(self, text: str) -> None:
        """Sends a question and waits for the end of its reply."""
        self.send(text)
        self.wait()

    def send(self, text: str) -> None:
        self.page.fill("#text", text)
        self.page.press("Enter")

    def wait(self) -> None:
        self.page.until(f"{IDLE} && document.querySelector('article:last-child.assistant[aria-busy=false]')")

    def show(self, markdown: str, **options) -> None:
        """Has the server reply with Markdown."""
        self.server.say(markdown, **options)
        self.ask("Show it")

    @property
    def questions(self) -> list[str]:
        return self.page.texts(".said")

    @property
    def replies(self) -> list[str]:
        return [text.strip() for text in self.page.texts(".assistant > .markdown")]

    def catch_copies(self) -> None:
        """Puts what is copied into `window.copied`, for want of a clipboard."""
        self.page.evaluate(
            "Object.defineProperty(navigator, 'clipboard',"
            "{value: {writeText: async (text) => { window.copied = text; }}})"
        )

    def choose(self, button: str, item: str) -> None:
        """Opens a menu and chooses from it."""
        self.page.click(button)
        items = "[...document.querySelectorAll('#menu button')]"
        self.page.evaluate(f"{items}.find((e) => e.textContent === {item!r}).click()")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if not (BUNDLE / "index.html").is_file():
        pytest.skip("the chat page is not built: run sh scripts/build_page.sh")
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture
def page(browser):
    """A page whose scripts may not fail, and which may not try what its policy blocks."""
    found = browser.page()
    yield found
    found.close()


@pytest.fixture
def server():
    with fake_server() as found:
        yield found


@pytest.fixture
def chat(page, server):
    page.go(server.url)
    page.until("document.getElementById('model').value")
    return Chat(page, server)
