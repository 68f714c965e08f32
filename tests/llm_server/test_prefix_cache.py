"""Requests that share the beginning of their prompts: it is read once, whichever session they get."""

from __future__ import annotations

import threading

import pytest

from tests.llm_server.conftest import running

SYSTEM = "You write Python and nothing else. " * 8


def messages(question):
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]


def ask(client, question):
    return client.chat.completions.create(model="demo", messages=messages(question), temperature=0, max_tokens=10)


def own(demo, question):
    return demo.chat(messages(question), do_sample=False, max_new_tokens=10).run()["content"]


def common(demo, one, other):
    texts = [demo.apply_chat_template(messages(question), add_generation_prompt=True) for question in (one, other)]
    return next(i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b)


def busy_request(client):
    """A request that keeps a session until it is closed."""
    stream = client.completions.create(model="demo", prompt="x", stream=True, extra_body={"ignore_eos": True})
    next(stream)
    return stream


@pytest.mark.parametrize("parallel", [2, 3])
def test_a_busy_session_s_system_prompt_is_read_once(demo, parallel):
    with running(demo, parallel=parallel) as server:
        client = server.openai()
        first = ask(client, "What is a list?")
        assert first.usage.prompt_tokens_details.cached_tokens == 0
        # The session that has it gets other text, so that only the cache knows the prompt.
        streams = [busy_request(client) for _ in range(parallel - 1)]
        second = ask(client, "Name a module.")
        assert second.usage.prompt_tokens_details.cached_tokens >= common(demo, "What is a list?", "Name a module.")
        for stream in streams:
            stream.close()
        assert first.choices[0].message.content == own(demo, "What is a list?")
        assert second.choices[0].message.content == own(demo, "Name a module.")


def test_a_conversation_comes_back_after_others_had_its_session(demo):
    with running(demo) as server:
        client = server.openai()
        ask(client, "What is a list?")
        for text in ("import os", "class A:"):
            client.completions.create(model="demo", prompt=text * 10, max_tokens=4)
        before = server.engine.prefix_cache.info
        again = ask(client, "What is a list?")
        after = server.engine.prefix_cache.info
        assert again.usage.prompt_tokens_details.cached_tokens == again.usage.prompt_tokens - 1
        assert after["hits"] == before["hits"] + 1
        assert after["reused_tokens"] - before["reused_tokens"] == again.usage.prompt_tokens - 1
        assert again.choices[0].message.content == own(demo, "What is a list?")


def test_requests_at_the_same_time_have_their_own_texts(demo):
    questions = [f"What is {name}?" for name in ("a list", "a dict", "os", "a set", "re", "json")]
    found = {}
    with running(demo, parallel=3) as server:
        client = server.openai()
        ask(client, "Hello")

        def work(question):
            found[question] = ask(client, question)

        threads = [threading.Thread(target=work, args=(question,)) for question in questions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(
            answer.usage.prompt_tokens_details.cached_tokens >= common(demo, "Hello", question)
            for question, answer in found.items()
        )
    for question in questions:
        assert found[question].choices[0].message.content == own(demo, question)


def test_the_cache_keeps_to_its_bytes_and_can_be_left_out(demo):
    limit = 300_000
    with running(demo, prefix_cache_bytes=limit) as server:
        for i in range(6):
            ask(server.openai(), f"What is {i}?" * 20)
            assert server.engine.prefix_cache.info["bytes"] <= limit
    with running(demo, prefix_cache_bytes=0) as server:
        assert server.engine.prefix_cache is None
        assert ask(server.openai(), "What is a list?").choices[0].message.content == own(demo, "What is a list?")
