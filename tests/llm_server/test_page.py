"""The chat page in headless Chromium."""

from __future__ import annotations

import pytest

from tests.llm_server.browser import Browser
from tests.llm_server.conftest import TEMPLATE, running
from tests.llm_server.script import force

MARKUP = '<img src="x" onerror="document.title = 1"><b>bold</b> &amp; <script>document.title = 2</script>'


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


def open_page(browser, server):
    browser.go(server.url)
    browser.until("document.title === 'demo'")
    browser.evaluate("document.getElementById('settings').open = true")


def say(browser, text):
    browser.type("#text", text)
    browser.press_enter()


def contents(browser, kind):
    return browser.evaluate(f"[...document.querySelectorAll('{kind}')].map((element) => element.textContent)")


def test_a_chat_with_a_system_prompt(browser, server, demo):
    open_page(browser, server)
    browser.type("#system", "Be short.")
    browser.type("#temperature", "0")
    messages = [{"role": "system", "content": "Be short."}]
    for question in ("What is a list?", "And a tuple?"):
        say(browser, question)
        messages.append({"role": "user", "content": question})
        messages.append(demo.chat(messages, do_sample=False, context_length=1024).run())
        count = len(messages) // 2
        browser.until(
            f"document.querySelectorAll('.note').length === {count} && !document.getElementById('send').hidden"
        )
    assert contents(browser, ".content") == [messages[2]["content"], messages[4]["content"]]
    assert contents(browser, ".user") == ["What is a list?", "And a tuple?"]


def test_model_text_is_text_and_reasoning_is_dimmed(browser, with_template, monkeypatch):
    model = with_template(TEMPLATE)
    with running(model) as server:
        force(monkeypatch, model, f"<think>Hm.</think>{MARKUP}")
        open_page(browser, server)
        say(browser, MARKUP)
        browser.until("document.querySelectorAll('.note').length === 1")
        assert contents(browser, ".content") == contents(browser, ".user") == [MARKUP]
        assert browser.evaluate("document.querySelectorAll('main b, main img, main script').length") == 0
        assert browser.evaluate("document.title") == "demo"
        assert contents(browser, ".reasoning") == ["Hm."]
        assert float(browser.evaluate("getComputedStyle(document.querySelector('.reasoning')).opacity")) < 1


def test_stop_stops_and_new_forgets(browser, with_template, monkeypatch):
    model = with_template(TEMPLATE)
    with running(model) as server:
        force(monkeypatch, model, "word " * 600, pause=0.05)
        open_page(browser, server)
        say(browser, "Go on")
        browser.until("document.querySelector('.content')?.textContent.length > 10")
        assert server.engine.num_running == 1
        browser.evaluate("document.getElementById('stop').click()")
        browser.until("document.querySelector('.note')?.textContent === 'stopped'")
        server.until(lambda engine: engine.num_running == 0)
        assert len(contents(browser, ".content")[0]) < 2000
        browser.evaluate("document.getElementById('new').click()")
        assert contents(browser, "article") == []
        force(monkeypatch, model, "Yes")
        say(browser, "x")
        browser.until("document.querySelector('.content')?.textContent === 'Yes'")


def test_errors_are_shown_and_a_key_can_be_given(browser, demo):
    with running(demo, api_key="secret") as server:
        open_page(browser, server)
        say(browser, "What is a list?")
        browser.until("document.querySelector('.error')?.textContent.includes('API key')")
        browser.type("#key", "secret")
        browser.type("#max-tokens", "3")
        say(browser, "What is a list?")
        browser.until("document.querySelectorAll('.note').length === 2")
        notes = contents(browser, ".note")
        assert notes[0] == "cut off at the limit of tokens or time"
        assert notes[1].startswith("3 tokens in ")


def test_the_page_is_confined(server):
    with server.http() as http:
        for path in ("/", "/chat.js", "/chat.css"):
            headers = http.get(path).headers
            assert "default-src 'none'" in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
