"""Replies as they come: streaming, stopping, failing, scrolling."""

from __future__ import annotations

import re

PATH = "document.getElementById('scroller')"
DISTANCE = f"{PATH}.scrollHeight - {PATH}.clientHeight - {PATH}.scrollTop"


def test_a_chat_sends_what_was_said(chat):
    chat.server.say("Hello!")
    chat.ask("Hi")
    chat.ask("And?")
    assert chat.server.requests[1]["messages"] == [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "And?"},
    ]
    assert chat.server.requests[1]["model"] == "demo"
    assert (chat.questions, chat.replies) == (["Hi", "And?"], ["Hello!", "ok"])


def test_enter_sends_and_shift_enter_is_a_new_line(chat):
    chat.page.type("one")
    chat.page.press("Enter", "Shift")
    chat.page.type("two")
    assert chat.server.requests == []
    chat.page.press("Enter")
    chat.wait()
    assert chat.server.requests[0]["messages"][0]["content"] == "one\ntwo"


def test_reasoning_is_folded_and_can_be_opened(chat):
    chat.show("Yes.", reasoning="It is *so*.")
    assert chat.page.evaluate("document.querySelector('.reasoning').open") is False
    assert re.fullmatch(r"Thought( for \d+\.\d s)?", chat.page.texts(".reasoning summary")[0])
    chat.page.click(".reasoning summary")
    chat.page.until("document.querySelector('.reasoning em')?.textContent === 'so'")
    chat.ask("Sure?")
    assert chat.server.requests[1]["messages"][1]["reasoning_content"] == "It is *so*."


def test_tokens_a_second_are_shown(chat):
    chat.show("word " * 60, tokens=120)
    assert re.fullmatch(r"120 tokens · \d+\.\d tokens/s", chat.page.texts(".note")[0])
    title = chat.page.evaluate("document.querySelector('.note').title")
    assert "First token after" in title and "Prompt: 7 tokens" in title


def test_escape_stops_and_continue_goes_on(chat):
    reply = chat.server.say("one two three four", held=1)
    chat.send("Count")
    chat.page.until("document.querySelector('.assistant > .markdown').textContent.includes('one')")
    chat.page.press("Escape")
    chat.wait()
    reply.release()
    assert "Stopped" in chat.page.texts(".note")[0]
    assert chat.replies == ["one two"]
    chat.server.say("three")
    chat.page.click(".resume")
    chat.wait()
    assert chat.replies == ["one two three"]
    body = chat.server.requests[1]
    assert body["continue_final_message"] is True
    assert body["messages"][-1] == {"role": "assistant", "content": "one two "}


def test_a_cut_off_reply_says_so(chat):
    chat.show("Once upon", finish="length")
    assert chat.page.texts(".note")[0].startswith("Cut off")


def test_a_new_chat_is_free_of_the_reply_under_way(chat):
    reply = chat.server.say("secret of the first chat", held=1)
    chat.send("First")
    chat.page.until("document.querySelector('.assistant > .markdown').textContent.includes('secret')")
    chat.page.press("O", "Control", "Shift")
    assert chat.page.count("article") == 0
    assert chat.page.evaluate("document.activeElement.id") == "text"
    chat.ask("Second")
    reply.release()
    chat.page.until("document.querySelectorAll('.running').length === 0")
    assert chat.server.requests[1]["messages"] == [{"role": "user", "content": "Second"}]
    assert chat.replies == ["ok"]
    chat.ask("Third")
    assert [message["content"] for message in chat.server.requests[2]["messages"]] == ["Second", "ok", "Third"]
    chat.page.click(".chat:last-child .chat-open")
    assert chat.replies == ["secret of the first chat"]


def test_a_reply_goes_on_while_another_chat_is_read(chat):
    chat.ask("Old chat")
    chat.page.click("#new")
    reply = chat.server.say("a b c", piece=1, held=2)
    chat.send("New chat")
    chat.page.until("document.querySelector('.assistant > .markdown').textContent")
    chat.page.click(".chat:last-child .chat-open")
    assert chat.questions == ["Old chat"]
    assert chat.page.evaluate("document.getElementById('stop').hidden")
    assert chat.page.count(".running") == 1
    chat.page.click(".chat:first-child .chat-open")
    assert not chat.page.evaluate("document.getElementById('stop').hidden")
    reply.release()
    chat.wait()
    assert chat.replies == ["a b c"]


def test_scrolling_up_is_left_alone_while_a_reply_comes(chat):
    chat.page.resize(800, 600)
    reply = chat.server.say("A paragraph.\n\n" * 120, piece=7, held=120)
    chat.send("Go on")
    chat.page.until(f"{PATH}.scrollHeight > 2 * {PATH}.clientHeight && {DISTANCE} < 2")
    chat.page.wheel(400, 300, -150)
    chat.page.until(f"{DISTANCE} > 100 && !document.getElementById('to-end').hidden")
    before = chat.page.evaluate(f"{PATH}.scrollTop")
    reply.release()
    chat.wait()
    assert chat.page.evaluate(f"{PATH}.scrollTop") == before
    assert chat.page.evaluate(DISTANCE) > 500
    chat.page.click("#to-end")
    chat.page.until(f"{DISTANCE} < 2 && document.getElementById('to-end').hidden")
    chat.server.say("More.\n\n" * 60)
    chat.ask("More")
    chat.page.until(f"{DISTANCE} < 2")


def test_an_error_keeps_the_question(chat):
    chat.server.say(error="the prompt has 9 tokens: at most 8 fit", status=400)
    chat.ask("Too long")
    assert chat.questions == ["Too long"]
    assert chat.page.texts(".error span") == ["the prompt has 9 tokens: at most 8 fit"]
    chat.page.reload()
    chat.page.until("document.querySelector('.error span')?.textContent.includes('at most 8')")
    assert chat.questions == ["Too long"]
    chat.page.click(".error button")
    chat.wait()
    assert (chat.questions, chat.replies) == (["Too long"], ["ok"])
    assert chat.server.requests[0]["messages"] == chat.server.requests[1]["messages"]
    assert chat.page.count(".branches") == 0


def test_a_question_that_failed_is_not_lost_from_the_next_request(chat):
    chat.server.say(error="busy", status=503)
    chat.ask("First")
    chat.ask("Second")
    assert chat.server.requests[1]["messages"] == [{"role": "user", "content": "First\n\nSecond"}]


def test_a_connection_that_ends_keeps_what_came(chat):
    chat.show("half of", breaks=True)
    assert chat.replies == ["half of"]
    assert chat.page.texts(".error span") == ["The connection ended before the reply did."]


def test_a_server_that_is_gone_is_named(chat):
    chat.page.evaluate("window.fetch = () => Promise.reject(new TypeError('Failed to fetch'))")
    chat.ask("Anyone?")
    assert "mote serve" in chat.page.texts(".error span")[0]


def test_an_api_key_is_asked_for(chat):
    chat.server.key = "secret"
    chat.ask("Hi")
    chat.page.until("document.getElementById('key-dialog').open")
    assert chat.page.evaluate("document.activeElement.id") == "key"
    chat.page.type("secret")
    chat.page.press("Enter")
    chat.page.until("document.querySelector('.assistant > .markdown')?.textContent.includes('ok')")
    assert chat.questions == ["Hi"]
    chat.page.reload()
    chat.page.until("document.getElementById('model').value === 'demo'")


def test_a_long_reply_is_drawn_block_by_block(chat):
    text = "".join(f"## Part {n}\n\nSome words of part {n}, and some more.\n\n- a\n- b\n\n" for n in range(400))
    assert len(text) > 20_000
    chat.page.evaluate(
        "window.drawn = 0; const count = (node) => node.className === 'block' && drawn++;"
        "new MutationObserver((all) => all.forEach(({addedNodes}) => addedNodes.forEach(count)))"
        ".observe(document.getElementById('messages'), {childList: true, subtree: true})"
    )
    chat.show(text, piece=40)
    blocks = chat.page.count(".block")
    assert blocks == 1200
    # The last block or two are drawn at most once a frame; all others once.
    assert chat.page.evaluate("drawn") < 3 * blocks
