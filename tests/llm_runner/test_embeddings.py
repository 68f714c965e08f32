"""Embeddings: what files give agrees with PyTorch, with sentence-transformers' files deciding how."""

import numpy as np
import pytest
import torch

from llm_export.api import export
from llm_export.errors import FileError, UnsupportedError
from llm_runner import ArgumentError, CancelledError, ContextFullError, Model
from tests import embedders

TEXTS = [
    "Why is the sky blue?", "a", "def add(first, second):\n    return first + second", "The quick brown fox " * 5,
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich",
]  # fmt: skip
MAKERS = {"qwen3": embedders.qwen3_like, "gemma": embedders.gemma_like}


@pytest.fixture(scope="module", params=MAKERS)
def tiny(request, tmp_path_factory):
    torch.set_num_threads(1)
    return MAKERS[request.param](tmp_path_factory.mktemp(request.param) / "checkpoint")


@pytest.fixture(scope="module")
def model(tiny):
    path = tiny.folder.parent / "none.mote"
    report = export(tiny.folder, path, recipe="none", check="full")
    assert report.check.embedding_error <= report.check.tolerance
    return Model.load(path)


def cosine(a, b):
    return float((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b))


def test_vectors_are_pytorchs(tiny, model):
    found = model.embed(TEXTS)
    assert found.dtype == np.float32 and found.shape == (len(TEXTS), 64)
    for text, vector in zip(TEXTS, found, strict=True):
        assert np.abs(vector - tiny.vector(text)).max() < 1e-4, text
    with model.embedder(kv_dtype="float32") as embedder:
        longer = embedder.embed(TEXTS, normalize=False)
    assert np.abs(longer[0] - tiny.vector(TEXTS[0], normalize=False)).max() < 1e-4 * np.abs(longer[0]).max()


def test_vectors_are_those_of_sentence_transformers(tiny, model):
    library = pytest.importorskip("sentence_transformers")
    oracle = library.SentenceTransformer(str(tiny.folder), device="cpu")
    assert oracle.max_seq_length == model.embedding_config["max_tokens"] == 64
    texts = [*TEXTS, "word " * 100]
    for name in (None, "query", "document"):
        expected = oracle.encode(texts, prompt_name=name, batch_size=1)
        assert np.abs(model.embed(texts, prompt_name=name) - expected).max() < 1e-4
    assert np.abs(model.embed(TEXTS, prompt="p: ") - oracle.encode(TEXTS, prompt="p: ", batch_size=1)).max() < 1e-4


def test_quantized_vectors_are_near(tiny, tmp_path):
    export(tiny.folder, tmp_path / "x.mote", check="full")
    with Model.load(tmp_path / "x.mote") as model:
        for text, vector in zip(TEXTS, model.embed(TEXTS), strict=True):
            assert cosine(vector, tiny.vector(text)) > 0.98, text
        with model.embedder() as embedder:
            report = embedder.check_golden()
    assert report["passed"] and len(report["samples"]) == 2


def test_bits_depend_on_nothing_but_the_text(tiny, model):
    expected = model.embed(TEXTS)
    for options in ({"threads": 1}, {"threads": 3}, {"prefill_chunk": 16}, {"prefill_chunk": 3}):
        with model.embedder(**options) as embedder:
            assert np.array_equal(embedder.embed(TEXTS), expected), options
            assert np.array_equal(embedder.embed(TEXTS[::-1]), expected[::-1]), options
            assert np.array_equal(embedder.embed(TEXTS[2]), expected[2]), options
    many = model.embed(TEXTS * 40)  # more than one call computes
    assert np.array_equal(many, np.tile(expected, (40, 1)))


def test_texts_of_every_length(tiny, model):
    ids = tiny.ids("The quick brown fox jumps over the lazy dog. " * 5)
    for count in (1, 2, embedders.WINDOW, 2 * embedders.WINDOW + 1, 33, 64):
        assert np.abs(model.embed(ids[:count]) - tiny.vector(ids[:count])).max() < 1e-4, count


def test_prompts(tiny, model):
    query = tiny.vector(embedders.PROMPTS["query"] + TEXTS[0])
    assert model.embedding_config["prompts"] == embedders.PROMPTS
    assert np.abs(model.embed(TEXTS[0], prompt_name="query") - query).max() < 1e-4
    assert np.array_equal(model.embed(TEXTS[0], prompt_name="query"),
                          model.embed(TEXTS[0], prompt=embedders.PROMPTS["query"]))  # fmt: skip
    with pytest.raises(ArgumentError, match="prompt_name = 'passage': must be one of document, query"):
        model.embed(TEXTS[0], prompt_name="passage")
    with pytest.raises(ArgumentError, match="only one of them"):
        model.embed(TEXTS[0], prompt_name="query", prompt="x")
    with pytest.raises(ArgumentError, match="before a text only"):
        model.embed([[5, 6]], prompt_name="query")


def test_dimensions(tiny, model):
    short = model.embed(TEXTS, dimensions=16)
    whole = model.embed(TEXTS, normalize=False)[:, :16]
    assert np.abs(short - whole / np.linalg.norm(whole, axis=1, keepdims=True)).max() < 1e-6
    with pytest.raises(ArgumentError, match=r"dimensions = 65: must be 1\.\.64"):
        model.embed(TEXTS, dimensions=65)


def test_long_texts_lose_their_end_and_keep_the_end_token(tiny, model):
    text = "word " * 100
    ids = tiny.ids(text)
    cut = [*ids[:63], ids[-1]]
    with model.embedder() as embedder:
        vectors, counts = embedder.embed_counted([text])
        assert counts == [64] and np.abs(vectors[0] - tiny.vector(cut)).max() < 1e-4
        with pytest.raises(ContextFullError, match=rf"input 1: its {len(ids)} tokens do not fit: must be at most 64"):
            embedder.embed(["a", text], truncate=False)


def test_special_tokens_in_texts(tiny, model):
    text = "a<|im_end|>b"
    assert np.abs(model.embed(text) - tiny.vector(text)).max() < 1e-4
    assert not np.array_equal(model.embed(text, parse_special_tokens=False), model.embed(text))


def test_wrong_inputs(model):
    with pytest.raises(ArgumentError, match=r"input 0: token id 4096: must be 0\.\.4095"):
        model.embed([[4096]])
    with pytest.raises(ArgumentError, match="input 1: it has no tokens"):
        model.embed([[1], []])
    assert model.embed([]).shape == (0, 64)
    with pytest.raises(ArgumentError, match=r"context_length = 65: must be 1\.\.64"):
        model.embedder(context_length=65)


def test_cancelled_calls_leave_the_embedder_whole(model):
    with model.embedder() as embedder:
        expected = embedder.embed(TEXTS)
        embedder.cancel()
        with pytest.raises(CancelledError):
            embedder.embed(TEXTS)
        assert np.array_equal(embedder.embed(TEXTS), expected)


def test_files_that_only_embed_say_so(model):
    with pytest.raises(ArgumentError, match="gives embeddings only: export the checkpoint with --no-embed"):
        model.session()


def test_files_that_do_not_embed_say_how(demo):
    with pytest.raises(ArgumentError, match="no method that gives embeddings: export the checkpoint with --embed"):
        demo.embed("a")


def test_a_causal_model_may_embed_too(tmp_path):
    embedder = embedders.qwen3_like(tmp_path / "x")
    (tmp_path / "x" / "modules.json").unlink()
    config = (tmp_path / "x" / "config.json").read_text()
    (tmp_path / "x" / "config.json").write_text(config.replace("Qwen3Model", "Qwen3ForCausalLM"))
    plain = export(tmp_path / "x", tmp_path / "plain.mote", check="off")
    report = export(tmp_path / "x", tmp_path / "x.mote", embed=True, check="full")
    with Model.load(plain.path) as model:
        weights = model.describe()["weights"]["bytes"]
        text = "".join(model.generate("a", max_new_tokens=8))
    with Model.load(report.path) as model:
        assert model.describe()["weights"]["bytes"] == weights
        assert "".join(model.generate("a", max_new_tokens=8)) == text
        assert model.embedding_config["pooling"] == "lasttoken"
        assert cosine(model.embed(TEXTS[0]), embedder.vector(TEXTS[0])) > 0.98
        with model.session() as session:
            assert session.check_golden()["passed"]


def test_prompts_that_do_not_count(tmp_path):
    embedder = embedders.qwen3_like(tmp_path / "x")
    embedders.write_files(tmp_path / "x", "mean", include_prompt=False)
    prompt = len(embedder.ids(embedders.PROMPTS["query"])) - 1  # without the end token
    embedder.pool = lambda hidden: hidden[prompt:].mean(0)
    export(tmp_path / "x", tmp_path / "x.mote", recipe="none", check="off")
    with Model.load(tmp_path / "x.mote") as model:
        found = model.embed(TEXTS[0], prompt_name="query")
    assert np.abs(found - embedder.vector(embedders.PROMPTS["query"] + TEXTS[0])).max() < 1e-4


def test_dense_with_an_activation(tmp_path):
    embedder = embedders.qwen3_like(tmp_path / "x")
    tanh = "torch.nn.modules.activation.Tanh"
    ((weight, bias),) = embedders.write_files(tmp_path / "x", "cls", dense=[(64, 24, tanh)])
    embedder.pool, embedder.dense = lambda hidden: hidden[0], [(weight, bias, torch.tanh)]
    export(tmp_path / "x", tmp_path / "x.mote", recipe="none", check="full")
    with Model.load(tmp_path / "x.mote") as model:
        found = model.embed(TEXTS)
    assert found.shape == (len(TEXTS), 24)
    assert np.abs(found[2] - embedder.vector(TEXTS[2])).max() < 1e-4
    embedders.write_files(tmp_path / "x", "mean", dense=[(64, 24, tanh)])
    with pytest.raises(UnsupportedError, match="activation behind 'mean' pooling"):
        export(tmp_path / "x", tmp_path / "y.mote", check="off")


def test_modules_that_are_not_there(tmp_path):
    embedders.qwen3_like(tmp_path / "x")
    modules = tmp_path / "x" / "modules.json"
    good = modules.read_text()
    modules.write_text(good.replace("models.Normalize", "models.LSTM"))
    with pytest.raises(UnsupportedError, match="has Transformer, Pooling, LSTM: must be"):
        export(tmp_path / "x", tmp_path / "y.mote", check="off")
    modules.write_text(good.replace("1_Pooling", "../1_Pooling"))
    with pytest.raises(FileError, match="must be a folder inside"):
        export(tmp_path / "x", tmp_path / "y.mote", check="off")
    modules.write_text(good)
    (tmp_path / "x" / "1_Pooling" / "config.json").unlink()
    with pytest.raises(FileError, match="modules.json has a Pooling"):
        export(tmp_path / "x", tmp_path / "y.mote", check="off")
