"""What a real model says through Mote, beside transformers: quality, templates, constraints, long prompts, sessions."""

import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import torch

from llm_runner import Model

pytestmark = pytest.mark.xdist_group("smollm2")

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "quantization.md").read_text()
CHAT = [
    {"role": "system", "content": "You are a patient teacher."},
    {"role": "user", "content": "Why is the sky blue?"},
]
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "population": {"type": "integer"}, "coast": {"type": "boolean"}},
    "required": ["city", "population", "coast"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def model(exported):
    """Of `mote export FILE.gguf`, with nothing else."""
    with Model.load(exported()) as model:
        yield model


@pytest.fixture(scope="module")
def expected(transformers_model):
    """ids of a text [T], and transformers' logits [T, vocab_size]"""
    torch_model, tokenizer = transformers_model
    ids = tokenizer(TEXT)["input_ids"][:1024]
    with torch.no_grad():
        logits = torch_model(torch.tensor([ids])).logits[0]
    return ids, logits.double().log_softmax(-1).numpy()


def logprobs_of(path, ids):
    with Model.load(path) as model, model.session(kv_dtype="float32") as session:
        rows = np.concatenate([np.asarray(session.verify(ids[at : at + 256])) for at in range(0, len(ids), 256)])
    return torch.from_numpy(rows).double().log_softmax(-1).numpy()


def perplexity(logprobs, ids):
    return np.exp(-np.mean([row[token] for row, token in zip(logprobs, ids[1:], strict=False)]))


@pytest.mark.parametrize(("recipe", "most_lost", "most_kl"), [("stored-float", 1e-5, 1e-6), (None, 0.005, 0.005)])
def test_a_gguf_file_keeps_its_quality(exported, expected, recipe, most_lost, most_kl):
    ids, reference = expected
    found = logprobs_of(exported(recipe), ids)
    divergence = (np.exp(reference) * (reference - found)).sum(-1).mean()
    assert divergence < most_kl
    assert abs(perplexity(found, ids) / perplexity(reference, ids) - 1) < most_lost
    same = (found.argmax(-1) == reference.argmax(-1)).mean()
    assert same > (0.999 if recipe else 0.94)


def test_weights_take_no_more_bits_than_in_the_gguf(model, gguf):
    tensors = model.describe()["weights"]["tensors"]
    assert sum(tensor["bytes"] for tensor in tensors) <= gguf.stat().st_size


@pytest.mark.parametrize(
    "text", [TEXT[:4000], "naïve 模型 🙂\tטקסט\r\n\n  x=1", "<|im_start|>user\nHi<|im_end|>\n", ""]
)
def test_token_ids_are_those_of_transformers(model, transformers_model, text):
    _, tokenizer = transformers_model
    assert list(model.encode(text)) == tokenizer(text)["input_ids"]


@pytest.mark.parametrize("messages", [CHAT, CHAT[1:], [*CHAT, {"role": "assistant", "content": "Light."}, CHAT[1]]])
def test_prompts_are_those_of_transformers(model, transformers_model, messages):
    _, tokenizer = transformers_model
    expected = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert model.apply_chat_template(messages, tokenize=False, add_generation_prompt=True) == expected


def test_a_greedy_reply_is_that_of_transformers(exported, transformers_model):
    torch_model, tokenizer = transformers_model
    ids = tokenizer.apply_chat_template(CHAT, add_generation_prompt=True, return_dict=True)["input_ids"]
    with torch.no_grad():
        made = torch_model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=48)[0][len(ids) :].tolist()
    with Model.load(exported("stored-float")) as model:
        generation = model.generate(ids, temperature=0, max_new_tokens=48)
        generation.text()
    assert generation.token_ids == made


def test_a_chat_answers_and_ends(model):
    reply = model.chat([{"role": "user", "content": "How many days are in a week?"}], temperature=0, max_new_tokens=40)
    assert "7" in reply.run()["content"]
    assert reply.finish_reason == "eos"


def test_a_schema_holds(model):
    question = [{"role": "user", "content": "Tell me about a city of your choice, as JSON."}]
    schema = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY}}
    for seed in range(3):
        reply = model.chat(question, response_format=schema, seed=seed, max_new_tokens=200)
        message = reply.run()
        assert reply.finish_reason == "eos"
        jsonschema.validate(json.loads(message["content"]), CITY)


def test_a_regular_expression_holds(model):
    text = model.generate("The year of the moon landing is ", regex="(19|20)[0-9]{2}", temperature=0).text()
    assert re.fullmatch("(19|20)[0-9]{2}", text)


def test_positions_far_into_a_text(exported, transformers_model):
    torch_model, tokenizer = transformers_model
    ids = (tokenizer(TEXT)["input_ids"] * 2)[:2000]
    with torch.no_grad():
        wanted = torch_model(torch.tensor([ids]), logits_to_keep=1).logits[0, -1].numpy()
    for kv_dtype, bound in (("float32", 1e-4), ("float16", 5e-3)):
        with Model.load(exported("stored-float")) as model, model.session(kv_dtype=kv_dtype) as session:
            found = np.asarray(session.prefill(ids))
        assert np.abs(found - wanted).max() / np.abs(wanted).max() < bound


def test_a_conversation_goes_on_after_it_was_saved(model, tmp_path):
    with model.session() as session:
        messages = [{"role": "user", "content": "My name is Ada. Say hello."}]
        messages.append(session.chat(messages, temperature=0, max_new_tokens=32).run())
        session.save(tmp_path / "talk.session")
        messages.append({"role": "user", "content": "What is my name?"})
        reply = session.chat(messages, temperature=0, max_new_tokens=24)
        expected = reply.run()["content"]
        assert reply.cached_tokens > 0
    with model.session() as session:
        session.restore(tmp_path / "talk.session")
        assert session.chat(messages, temperature=0, max_new_tokens=24).run()["content"] == expected


def test_speculation_changes_nothing(model):
    prompt = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n\n\ndef mul(a, b):\n"
    plain = model.generate(prompt, temperature=0, max_new_tokens=64, speculative="off").text()
    assert model.generate(prompt, temperature=0, max_new_tokens=64, speculative="lookup").text() == plain


def test_a_batch_says_what_each_says_alone(model):
    prompts = ["The capital of Italy is", "Water boils at", "import numpy as"]
    alone = [model.generate(prompt, temperature=0, max_new_tokens=12).text() for prompt in prompts]
    together = [""] * len(prompts)
    for index, text in model.generate_batch(prompts, temperature=0, max_new_tokens=12):
        together[index] += text
    assert together == alone
