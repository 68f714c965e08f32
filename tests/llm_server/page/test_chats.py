"""Chats that are kept: branches, the list, files."""

from __future__ import annotations

import json

# What the page would save: taken from it, because files that a headless browser downloads cannot be waited for.
CAPTURE = """
window.files = {};
const blobs = {};
URL.createObjectURL = (blob) => { const url = `blob:${Object.keys(blobs).length}`; blobs[url] = blob; return url; };
HTMLAnchorElement.prototype.click = function () {
  blobs[this.href].text().then((text) => { files[this.download] = text; });
};
"""


SAVED = """
new Promise((resolve) => {
  const opened = indexedDB.open('mote', 1);
  const isHalf = ({messages}) => messages.some(({content}) => content === 'half');
  const look = () => (opened.result.transaction('chats').objectStore('chats').getAll().onsuccess = ({target}) =>
    target.result.some(isHalf) ? resolve() : setTimeout(look, 20));
  opened.onsuccess = look;
})
"""


def branch(chat) -> list[str]:
    return chat.page.texts(".branch")


def edit(chat, index: int, text: str) -> None:
    chat.page.evaluate(f"document.querySelectorAll('[aria-label=\"Edit question\"]')[{index}].click()")
    chat.page.evaluate("document.activeElement.select()")
    chat.page.type(text)
    chat.page.press("Enter")
    chat.wait()


def test_an_edited_question_stands_beside_the_first(chat):
    for text in ("A1", "A2", "B1"):
        chat.server.say(text)
    chat.ask("first")
    chat.ask("second")
    edit(chat, 0, "other")
    assert (chat.questions, chat.replies, branch(chat)) == (["other"], ["B1"], ["2 / 2"])
    assert chat.server.requests[2]["messages"] == [{"role": "user", "content": "other"}]
    chat.page.click("[aria-label='Previous version']")
    assert (chat.questions, chat.replies, branch(chat)) == (["first", "second"], ["A1", "A2"], ["1 / 2"])
    assert chat.page.evaluate("document.activeElement.ariaLabel") == "Next version"
    assert chat.page.evaluate("document.querySelector('[aria-label=\"Previous version\"]').disabled")
    chat.ask("third")
    assert [m["content"] for m in chat.server.requests[3]["messages"]] == ["first", "A1", "second", "A2", "third"]


def test_escape_leaves_a_question_as_it_is(chat):
    chat.ask("first")
    chat.page.click("[aria-label='Edit question']")
    chat.page.type("x")
    chat.page.press("Escape")
    assert chat.questions == ["first"] and chat.page.count(".edit") == 0
    assert chat.page.evaluate("document.activeElement.ariaLabel") == "Edit question"


def test_a_reply_made_again_stands_beside_the_first(chat):
    for text in ("one", "two", "three"):
        chat.server.say(text)
    chat.ask("Say a number")
    for _ in range(2):
        chat.page.click("[aria-label='Make the reply again']")
        chat.wait()
    assert (chat.replies, branch(chat)) == (["three"], ["3 / 3"])
    assert [request["messages"] for request in chat.server.requests] == [chat.server.requests[0]["messages"]] * 3
    chat.page.click("[aria-label='Previous version']")
    assert (chat.replies, branch(chat)) == (["two"], ["2 / 3"])
    chat.page.reload()
    chat.page.until("document.querySelector('.branch')?.textContent === '2 / 3'")
    assert chat.replies == ["two"]


def test_a_reload_keeps_chats_and_a_reply_half_way(chat):
    chat.ask("Old")
    chat.page.click("#new")
    chat.server.say("half of it", piece=4, held=1)
    chat.send("New")
    chat.page.until("document.querySelector('.assistant > .markdown').textContent")
    chat.page.evaluate(SAVED)  # within a second
    chat.page.reload()
    chat.page.until("document.querySelectorAll('.chat').length === 2 && document.querySelector('.note')")
    assert chat.page.texts(".chat-title") == ["New", "Old"]
    assert chat.questions == ["New"]
    assert chat.page.texts(".note") == ["Interrupted"]
    chat.page.click(".chat:last-child .chat-open")
    assert (chat.questions, chat.replies) == (["Old"], ["ok"])


def test_chats_are_found_renamed_deleted_and_brought_back(chat):
    page = chat.page
    for text in ("About cats", "About dogs"):
        page.click("#new")
        chat.ask(text)
    page.fill("#search", "DOGS")
    assert page.texts(".chat-title") == ["About dogs"]
    page.fill("#search", "ok")  # in the replies
    assert page.count(".chat") == 2
    page.fill("#search", "birds")
    assert page.texts("#no-chats") == ["No chat has these words."] and page.count(".chat") == 0
    page.evaluate("const s = document.getElementById('search'); s.value = ''; s.dispatchEvent(new Event('input'))")
    chat.choose(".chat:last-child .icon-button", "Rename")
    page.evaluate("document.activeElement.select()")
    page.type("Felines")
    page.press("Enter")
    page.until("document.querySelector('.chat:last-child .chat-title')?.textContent === 'Felines'")
    assert page.evaluate("document.activeElement.title") == "Felines"
    chat.choose(".chat:last-child .icon-button", "Delete")
    page.until("document.querySelectorAll('.chat').length === 1")
    page.click("#toast button")
    page.until("document.querySelectorAll('.chat').length === 2")
    chat.choose(".chat:first-child .icon-button", "Delete")
    page.until("document.querySelectorAll('.chat').length === 1")
    assert page.count("article") == 0
    page.reload()
    page.until("document.querySelector('.chat-title')?.textContent === 'Felines'")
    assert page.count(".chat") == 1


def exported(chat, button: str, item: str) -> tuple[str, str]:
    chat.page.evaluate("window.files = {}")
    chat.choose(button, item)
    chat.page.until("Object.keys(files).length === 1")
    return chat.page.evaluate("Object.entries(files)[0]")


def test_chats_become_files_and_come_back(chat, browser, tmp_path):
    page = chat.page
    page.evaluate(CAPTURE)
    chat.server.say("**one**", reasoning="Hm.")
    chat.ask("First: chat")
    page.click("[aria-label='Make the reply again']")
    chat.wait()
    page.click("#new")
    chat.ask("Second")
    name, one = exported(chat, ".chat:last-child .icon-button", "Export as JSON")
    assert name == "First-chat.json" and [chat["title"] for chat in json.loads(one)["chats"]] == ["First: chat"]
    name, text = exported(chat, ".chat:last-child .icon-button", "Export as Markdown")
    assert (name, text) == ("First-chat.md", "# First: chat\n\n## You\n\nFirst: chat\n\n## demo\n\nok\n")
    assert exported(chat, "#export", "As Markdown, to read")[1].count("\n## You\n") == 2
    name, everything = exported(chat, "#export", "As JSON, to import again")
    assert name == "mote-chats.json"
    path = tmp_path / name
    path.write_text(everything)
    page.choose_file("#import-file", path)
    page.until("document.getElementById('toast').textContent === 'Imported: 0 of 2; the others were there already.'")
    other = browser.page()
    other.go(chat.server.url)
    other.until("document.getElementById('model').value")
    other.choose_file("#import-file", path)
    other.until("document.querySelectorAll('.chat').length === 2")
    other.click(".chat:last-child .chat-open")
    assert other.texts(".branch") == ["2 / 2"]
    other.click("[aria-label='Previous version']")
    assert other.texts(".assistant > .markdown strong") == ["one"]
    other.close()


def test_a_file_that_is_no_export_is_refused_in_words(chat, tmp_path):
    wrong = {
        "text.json": ("no json", "not valid JSON"),
        "other.json": ("{}", 'no "format": "mote-chats"'),
        "role.json": (json.dumps({"format": "mote-chats", "version": 1, "chats": [
            {"id": "a", "title": "t", "created": 1, "updated": 1,
             "messages": [{"id": "b", "role": "system", "content": "", "created": 1}]}]}),
            "chats[0]: role: must be user or assistant"),
    }  # fmt: skip
    for name, (content, sentence) in wrong.items():
        (tmp_path / name).write_text(content)
        chat.page.choose_file("#import-file", tmp_path / name)
        chat.page.until(f"document.getElementById('toast').textContent.startsWith({name!r})")
        assert sentence in chat.page.texts("#toast")[0]
    assert chat.page.count(".chat") == 0


def test_another_tab_hears_of_a_chat(chat):
    chat.ask("Here")
    chat.page.evaluate(
        "const opened = indexedDB.open('mote', 1); opened.onsuccess = () => {"
        "const chats = opened.result.transaction('chats', 'readwrite').objectStore('chats');"
        "chats.getAll().onsuccess = ({target}) => { const chat = {...target.result[0], title: 'There'};"
        "chats.put(chat).onsuccess = () => new BroadcastChannel('mote-chats').postMessage(chat.id); }; };"
    )
    chat.page.until("document.querySelector('.chat-title').textContent === 'There'")


def test_a_text_file_goes_with_a_question(chat, tmp_path):
    page = chat.page
    (tmp_path / "notes.md").write_text("Some ```code``` here\n")
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\xff\x00")
    page.choose_file("#attach-file", tmp_path / "notes.md", tmp_path / "photo.jpg")
    page.until("document.querySelectorAll('#files li').length === 1")
    assert page.texts("#toast") == ["photo.jpg: only text files (UTF-8) can be attached"]
    chat.ask("Sum it up")
    content = chat.server.requests[0]["messages"][0]["content"]
    assert content == "notes.md:\n````\nSome ```code``` here\n````\n\nSum it up"
    assert page.texts(".attachment summary") == ["notes.md"] and page.count("#files li") == 0
    edit(chat, 0, "Shorter")
    assert chat.server.requests[1]["messages"][0]["content"] == content.replace("Sum it up", "Shorter")
    page.choose_file("#attach-file", tmp_path / "notes.md")
    page.until("document.querySelectorAll('#files li').length === 1")
    page.click("#files button")
    assert page.count("#files li") == 0
