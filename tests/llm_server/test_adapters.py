"""Adapters that a server offers: by the model's name, by the field, listed, side by side."""

from __future__ import annotations

import asyncio
import threading

import httpx
import pytest

from llm_export.adapters import make_adapter
from llm_runner import ArgumentError
from llm_server.engine.pool import ModelPool, PoolOptions
from tests.adapters import save_lora
from tests.demo import CHECKPOINT
from tests.llm_server.conftest import running

PROMPT = "def read(path):\n"


@pytest.fixture(scope="module")
def adapters(demo_path, tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapters")
    paths = []
    for seed, name in enumerate(("style", "tone")):
        save_lora(CHECKPOINT, folder / name, targets=("q_proj", "v_proj", "up_proj"), seed=seed)
        make_adapter(folder / name, demo_path, folder / f"{name}.mote-adapter")
        paths.append(folder / f"{name}.mote-adapter")
    return paths


def own(demo, adapters):
    return demo.generate(PROMPT, adapters=adapters, do_sample=False, max_new_tokens=12).text()


def ask(client, model="demo", **fields):
    answer = client.completions.create(model=model, prompt=PROMPT, temperature=0, max_tokens=12, extra_body=fields)
    return answer.choices[0].text


@pytest.mark.parametrize("parallel", [1, 4])
def test_requests_choose_by_name_and_by_field(demo, adapters, parallel):
    style, tone = adapters
    with running(demo, parallel=parallel, adapters=[str(style), f"{tone}=0.5"]) as server, server.openai() as client:
        wanted = {
            "demo": ({}, []), "style": ({}, [style]), "tone": ({}, [(tone, 0.5)]),
        }  # fmt: skip
        for model, (fields, mix) in wanted.items():
            assert ask(client, model, **fields) == own(demo, mix), model
        assert ask(client, adapters=["style", "tone"]) == own(demo, [style, (tone, 0.5)])
        assert ask(client, adapters={"tone": 2.0}) == own(demo, [(tone, 2.0)])
        assert ask(client, "style", adapters=[]) == ask(client) == own(demo, [])


def test_requests_with_different_adapters_decode_together(demo, adapters):
    mixes = [[], ["style"], ["tone"], {"style": 0.5, "tone": 1.0}] * 2
    found = [""] * len(mixes)
    with running(demo, parallel=8, adapters=list(map(str, adapters))) as server, server.openai() as client:

        def request(i):
            found[i] = ask(client, adapters=mixes[i])

        threads = [threading.Thread(target=request, args=(i,)) for i in range(len(mixes))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    style, tone = adapters
    expected = [own(demo, mix) for mix in ([], [style], [tone], [(style, 0.5), (tone, 1.0)])]
    assert found == expected * 2 and len(set(expected)) > 1


def test_they_are_listed_and_unknown_ones_are_refused(demo, adapters):
    with running(demo, adapters=list(map(str, adapters))) as server:
        listed = httpx.get(f"{server.url}/v1/models").json()["data"]
        assert [(each["id"], each.get("parent")) for each in listed] == [
            ("demo", None), ("style", "demo"), ("tone", "demo"),
        ]  # fmt: skip
        assert httpx.get(f"{server.url}/v1/models/tone").json()["parent"] == "demo"
        body = {"model": "demo", "prompt": "a", "adapters": ["other"]}
        answer = httpx.post(f"{server.url}/v1/completions", json=body)
        assert answer.status_code == 400 and answer.json()["error"]["param"] == "adapters"
        assert "'other': must be adapters of the model 'demo', which has 'style', 'tone'" in answer.text
        answer = httpx.post(f"{server.url}/v1/completions", json={"model": "other", "prompt": "a"})
        assert answer.status_code == 404 and "'demo', 'style', 'tone'" in answer.text


def test_their_bytes_count(demo_path, adapters):
    """They stay in memory with the model, beside its sequences."""

    async def check():
        def made(names, max_memory):
            pool = ModelPool({"demo": demo_path}, PoolOptions(max_memory, adapters=tuple(map(str, names))))
            pool.close()
            return pool

        none = made([], 2**40)
        room = none.first.bytes_of(5, 256 * 2**20)
        assert made([], room).first.parallel == 5
        assert made(adapters, room).first.parallel == 4
        both = sum(path.stat().st_size for path in adapters)
        assert made(adapters, room + both).first.parallel == 5

    asyncio.run(check())


def test_what_cannot_be_offered_ends_the_start(demo, adapters, tmp_path):
    with pytest.raises(ArgumentError, match="two are one"), running(demo, adapters=[str(adapters[0])] * 2):
        pass
    (tmp_path / "demo.mote-adapter").write_bytes(adapters[0].read_bytes())
    same_name = [str(tmp_path / "demo.mote-adapter")]
    with pytest.raises(ArgumentError, match="a model has the same name"), running(demo, adapters=same_name):
        pass
