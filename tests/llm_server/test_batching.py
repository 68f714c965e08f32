"""Requests that decode together: each gets what it would get alone, whatever the others do."""

from __future__ import annotations

import threading

import pytest

from tests.llm_server.conftest import TEMPLATE, running

QUESTIONS = ["What is a list?", "What is a dict?", "import os", "def f(", "What is a set?", "class A:"]


def asked(question, **options):
    return {"model": "demo", "messages": [{"role": "user", "content": question}], "max_tokens": 12} | options


def own(demo, question, **options):
    messages = [{"role": "user", "content": question}]
    return demo.chat(messages, **{"max_new_tokens": 12, "do_sample": False} | options).run()["content"]


@pytest.fixture(scope="module")
def server(demo):
    with running(demo, parallel=3, session={"threads": 1, "context_length": 2048}) as found:
        assert found.engine._batch is not None
        yield found


def all_at_once(functions):
    results = [None] * len(functions)

    def work(i):
        results[i] = functions[i]()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_each_gets_its_own_text(server, demo):
    client = server.openai()
    seeds = range(len(QUESTIONS))
    expected = [own(demo, question) for question in QUESTIONS]
    sampled = [
        own(demo, question, do_sample=True, temperature=1.5, seed=seed)
        for question, seed in zip(QUESTIONS, seeds, strict=True)
    ]
    for _ in range(2):
        greedy = [
            lambda q=question: client.chat.completions.create(**asked(q, temperature=0)).choices[0].message.content
            for question in QUESTIONS
        ]
        hot = [
            lambda q=question, s=seed: client.chat.completions.create(**asked(q, temperature=1.5, seed=s))
            .choices[0].message.content
            for question, seed in zip(QUESTIONS, seeds, strict=True)
        ]  # fmt: skip
        assert all_at_once(greedy + hot) == expected + sampled


def test_who_leaves_does_not_disturb_the_others(server, demo):
    long = asked("What is a list?", temperature=0, ignore_eos=True, stream=True, max_tokens=None)
    expected = {question: own(demo, question) for question in QUESTIONS[1:4]}
    for events in (1, 3, 9):
        with server.http() as http, http.stream("POST", "/v1/chat/completions", json=long) as response:
            lines = response.iter_lines()
            for _ in range(events):
                next(lines)
            assert server.engine.num_running == 1
            for question, text in expected.items():
                found = server.openai().chat.completions.create(**asked(question, temperature=0))
                assert found.choices[0].message.content == text
        server.until(lambda engine: engine.num_running == 0)
        assert len(server.engine._batch) == 0
        for session in server.engine._free:
            assert session.position < 2000


def test_a_further_turn_reads_its_new_text_only(server):
    messages = [{"role": "user", "content": "What is a list? " * 8}]
    client = server.openai()
    first = client.chat.completions.create(model="demo", messages=messages, max_tokens=6, temperature=0)
    messages += [
        {"role": "assistant", "content": first.choices[0].message.content},
        {"role": "user", "content": "And?"},
    ]
    second = client.chat.completions.create(model="demo", messages=messages, max_tokens=6, temperature=0)
    assert second.usage.prompt_tokens_details.cached_tokens >= first.usage.prompt_tokens


def test_constraints_and_logprobs_hold_in_a_batch(server, demo):
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["yes", "no"]}}}
    client = server.openai()
    found = all_at_once(
        [
            lambda: client.chat.completions.create(**asked("x", temperature=2, response_format=schema)),
            lambda: client.chat.completions.create(**asked("What is a list?", temperature=0, logprobs=True)),
        ]
    )
    assert found[0].choices[0].message.content in ('"yes"', '"no"')
    alone = demo.chat(
        [{"role": "user", "content": "What is a list?"}], max_new_tokens=12, do_sample=False, logprobs=True
    )
    alone.run()
    entries = [entry.logprob for entry in alone.logprobs]
    assert [entry.logprob for entry in found[1].choices[0].logprobs.content] == entries[
        : len(found[1].choices[0].logprobs.content)
    ]


def test_the_end_of_the_server_ends_them(with_template):
    with running(with_template(TEMPLATE), parallel=2) as server:
        http = server.http()
        long = asked("x", ignore_eos=True, stream=True, max_tokens=None)
        response = http.send(http.build_request("POST", "/v1/chat/completions", json=long), stream=True)
        lines = response.iter_lines()
        next(lines)
    http.close()
    assert server.engine._batch.wait(0) is False
