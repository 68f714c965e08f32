"""Several models: loaded when they are asked for, out of memory when others need the room."""

from __future__ import annotations

import asyncio
import threading

import openai
import pytest

from llm_runner import ArgumentError
from llm_server.engine.engine import MAX_IDLE_SESSIONS
from llm_server.engine.pool import ModelPool, PoolOptions
from tests.llm_server.conftest import running
from tests.llm_server.script import slow_down

NAMES = ("one", "two", "three")
SHORT = {"messages": [{"role": "user", "content": "What is a list?"}], "max_tokens": 3, "temperature": 0}


@pytest.fixture
def room(demo):
    """room(n): bytes for n models with a sequence each"""
    with demo.session(context_length=1024) as session:
        one = demo.info["file_bytes"] + session.info["state_bytes"]
    return lambda count: int(one * (count + 0.5))


def in_memory(server) -> list[str]:
    return [model.name for model in server.models if model.engine is not None]


def ask(server, model, **options) -> str:
    return server.openai().chat.completions.create(model=model, **SHORT | options).choices[0].message.content


def test_the_least_recently_used_makes_room(demo, demo_path, room):
    models = dict.fromkeys(NAMES, demo_path)
    with running(models, max_memory=room(2), prefix_cache_bytes=0) as server:
        own = demo.chat(SHORT["messages"], max_new_tokens=3, do_sample=False).run()["content"]
        assert in_memory(server) == ["one"]
        for name, there in [
            ("two", ["one", "two"]),
            ("one", ["one", "two"]),
            ("three", ["one", "three"]),
            ("two", ["two", "three"]),
        ]:
            assert ask(server, name) == own
            assert in_memory(server) == there
        assert [model.id for model in server.openai().models.list()] == list(NAMES)
        assert server.models.used_bytes() <= room(2)
        assert ask(server, openai.omit) == own  # the first
        with pytest.raises(openai.NotFoundError, match="this server has 'one', 'two', 'three'"):
            ask(server, "four")


def test_a_model_in_use_stays_and_the_other_waits(demo_path, room, monkeypatch):
    models = dict.fromkeys(NAMES, demo_path)
    slow_down(monkeypatch, 0.02)
    with running(models, max_memory=room(1), prefix_cache_bytes=0) as server:
        stream = server.openai().chat.completions.create(model="one", **SHORT | {"max_tokens": 200}, stream=True)
        next(stream)
        done = []
        waiting = threading.Thread(target=lambda: done.append(ask(server, "two")))
        waiting.start()
        server.until(lambda _: server.models._waits_for_room)
        late = threading.Thread(target=lambda: done.append(ask(server, "one")))
        late.start()
        assert (in_memory(server), done) == (["one"], [])
        stream.close()
        waiting.join()
        late.join()
        assert len(done) == 2
        server.until(lambda _: all(model.num_users == 0 for model in server.models))


def test_what_has_no_room_is_refused(demo_path, without_tokenizer, room):
    def pool(sources, max_memory, parallel=None):
        return ModelPool(sources, PoolOptions(max_memory, parallel))

    async def check():
        with pytest.raises(ArgumentError, match="--max-memory 1 MiB: demo needs"):
            pool({"demo": demo_path}, 2**20)
        with pytest.raises(ArgumentError, match="has no tokenizer"):
            pool({"plain": without_tokenizer}, 2**40)
        with pytest.raises(ArgumentError, match="no model"):
            pool({}, 2**40)
        wide = pool({"demo": demo_path}, 2**40)
        assert wide.first.parallel == 256
        some = pool({"demo": demo_path}, wide.first.bytes_of(5, 256 * 2**20))
        assert some.first.parallel == 5
        for made in (wide, some):
            made.close()

    asyncio.run(check())


def test_a_crowd_is_served_and_leaves_little_behind(demo):
    """As many clients as a batch has room for, and more that wait."""
    found = []

    async def crowd(server, count):
        client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=300)
        async with client:
            asked = [client.chat.completions.create(model="demo", **SHORT) for _ in range(count)]
            found.extend(await asyncio.gather(*asked))

    with running(demo, parallel=None) as server:
        assert server.engine.parallel == 256
        asyncio.run(crowd(server, 300))
        own = demo.chat(SHORT["messages"], max_new_tokens=3, do_sample=False).run()["content"]
        assert [answer.choices[0].message.content for answer in found] == [own] * 300
        server.until(lambda engine: engine.num_running == 0)
        assert len(server.engine._free) <= MAX_IDLE_SESSIONS
