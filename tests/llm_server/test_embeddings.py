"""Embeddings over HTTP, with the official clients."""

import base64

import numpy as np
import ollama
import openai
import pytest
import torch

from llm_export.api import export
from llm_runner import Model
from tests import embedders
from tests.llm_server.conftest import running

TEXTS = ["Why is the sky blue?", "a", "The quick brown fox"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("embedder")
    embedders.qwen3_like(folder / "x")
    export(folder / "x", folder / "x.mote", recipe="none", check="off")
    return Model.load(folder / "x.mote")


@pytest.fixture(scope="module")
def server(model, demo):
    with running({"embedder": model, "demo": demo}) as found:
        yield found


def test_openai(model, server):
    client = server.openai()
    answer = client.embeddings.create(model="embedder", input=TEXTS)  # the client asks for base64
    expected = model.embed(TEXTS)
    assert np.array_equal(np.array([item.embedding for item in answer.data], np.float32), expected)
    assert [item.index for item in answer.data] == [0, 1, 2] and answer.model == "embedder"
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == sum(len(model.tokenize(text)) for text in TEXTS)
    one = client.embeddings.create(model="embedder", input=TEXTS[0], dimensions=8, encoding_format="float")
    assert np.allclose(one.data[0].embedding, model.embed(TEXTS[0], dimensions=8), atol=1e-7)


def test_what_inputs_may_be(model, server):
    ids = model.tokenize(TEXTS[0])
    with server.http() as http:

        def post(value, **fields):
            return http.post("/v1/embeddings", json={"input": value} | fields)

        for given, count in ((ids, 1), ([ids, [5, 6]], 2), (TEXTS[0], 1)):
            answer = post(given).json()
            assert np.array_equal(np.array(answer["data"][0]["embedding"], np.float32), model.embed(ids))
            assert len(answer["data"]) == count
        query = post(TEXTS[0], prompt_name="query", encoding_format="base64").json()["data"][0]["embedding"]
        found = np.frombuffer(base64.b64decode(query), "<f4")
        assert np.array_equal(found, model.embed(TEXTS[0], prompt_name="query"))
        assert "must be 1..2048" in post([]).json()["error"]["message"]
        refused = post(["a", "word " * 100])
        assert refused.status_code == 400 and refused.json()["error"]["code"] == "context_length_exceeded"
        assert post("word " * 100, truncate=True).json()["usage"]["prompt_tokens"] == 64


def test_ollama(model, server):
    client = ollama.Client(host=server.url)
    answer = client.embed(model="embedder", input=TEXTS)
    assert np.allclose(answer.embeddings, model.embed(TEXTS), atol=1e-7)
    assert answer.prompt_eval_count == sum(len(model.tokenize(text)) for text in TEXTS)
    long = client.embed(model="embedder", input="word " * 100, dimensions=4)
    assert long.prompt_eval_count == 64 and len(long.embeddings[0]) == 4
    with pytest.raises(ollama.ResponseError, match="do not fit"):
        client.embed(model="embedder", input="word " * 100, truncate=False)
    old = client.embeddings(model="embedder", prompt=TEXTS[0])
    assert np.allclose(old.embedding, model.embed(TEXTS[0], normalize=False), atol=1e-5)


def test_models_that_do_one_of_both(server):
    client = server.openai()
    with pytest.raises(openai.BadRequestError, match="export the checkpoint with --embed"):
        client.embeddings.create(model="demo", input="a")
    with pytest.raises(openai.BadRequestError, match="gives embeddings only"):
        client.completions.create(model="embedder", prompt="a")
    shown = ollama.Client(host=server.url).show("embedder")
    assert shown.capabilities == ["embedding"]
