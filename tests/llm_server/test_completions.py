"""Completions with the official openai client; what is generated is compared with llm_runner's."""

from __future__ import annotations

import numpy as np
import openai
import pytest

from llm_server.openai.prompt_logprobs import text_offsets
from tests.llm_server.conftest import running

PROMPT = "def read_lines(path):\n"
GREEDY = {"model": "demo", "prompt": PROMPT, "temperature": 0, "max_tokens": 10}


def own(demo, prompt=PROMPT, **options):
    generation = demo.generate(prompt, max_new_tokens=10, do_sample=False, **options)
    return generation.text(), generation


def test_texts_and_ids_are_continued(client, demo):
    text, generation = own(demo)
    ids = demo.tokenize(PROMPT)
    for prompt in (PROMPT, ids):
        found = client.completions.create(**GREEDY | {"prompt": prompt})
        assert (found.choices[0].text, found.choices[0].finish_reason) == (text, "length")
        assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (len(ids), len(generation.token_ids))
    assert found.usage.prompt_tokens_details.cached_tokens == len(ids) - 1
    chunks = list(client.completions.create(**GREEDY, stream=True, stream_options={"include_usage": True}))
    assert "".join(chunk.choices[0].text for chunk in chunks[:-1]) == text
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 2) + ["length"]
    assert chunks[-1].usage == client.completions.create(**GREEDY).usage


def test_several_prompts_and_choices_in_order(client, demo):
    found = client.completions.create(**GREEDY | {"prompt": [PROMPT, "import "], "n": 2, "echo": True})
    assert [choice.index for choice in found.choices] == [0, 1, 2, 3]
    expected = [prompt + own(demo, prompt)[0] for prompt in (PROMPT, PROMPT, "import ", "import ")]
    assert [choice.text for choice in found.choices] == expected


def test_logprobs_and_offsets(client, demo):
    text, generation = own(demo, top_logprobs=2)
    whole = client.completions.create(**GREEDY, logprobs=2).choices[0].logprobs
    chunks = list(client.completions.create(**GREEDY, logprobs=2, stream=True))
    streamed = [chunk.choices[0].logprobs for chunk in chunks]
    assert whole.token_logprobs == [entry.logprob for entry in generation.logprobs]
    assert sum((part.token_logprobs for part in streamed), []) == whole.token_logprobs
    assert "".join(whole.tokens) == text
    assert [
        text[at : at + len(token)] for at, token in zip(whole.text_offset, whole.tokens, strict=True)
    ] == whole.tokens
    assert sum((part.text_offset for part in streamed), []) == whole.text_offset
    assert [sorted(top.values()) for top in whole.top_logprobs] == [
        sorted(logprob for _, logprob in entry.top) for entry in generation.logprobs
    ]


@pytest.mark.parametrize("parallel", [1, 2])
def test_an_echo_has_the_logprobs_of_its_prompt(demo, parallel):
    ids = demo.tokenize(PROMPT)
    expected = demo.score(ids)
    after = own(demo, top_logprobs=3)[1]
    with running(demo, parallel=parallel) as server:
        client = server.openai()
        client.completions.create(**GREEDY)  # the prompt has been read before
        found = client.completions.create(**GREEDY, echo=True, logprobs=3, n=2)
        chunks = list(client.completions.create(**GREEDY, echo=True, logprobs=3, stream=True))
        scored = client.completions.create(**GREEDY | {"max_tokens": 0}, echo=True, logprobs=3)
        again = client.completions.create(**GREEDY)
    text = found.choices[0].text
    assert text == PROMPT + own(demo)[0]
    for choice in found.choices:
        logprobs = choice.logprobs
        assert logprobs.token_logprobs[0] is logprobs.top_logprobs[0] is None
        np.testing.assert_allclose(logprobs.token_logprobs[1 : len(ids)], expected, atol=1e-5)
        assert logprobs.token_logprobs[len(ids) :] == [entry.logprob for entry in after.logprobs]
        assert [
            text[at : at + len(name)] for at, name in zip(logprobs.text_offset, logprobs.tokens, strict=True)
        ] == logprobs.tokens
        for name, value, top in list(zip(logprobs.tokens, logprobs.token_logprobs, logprobs.top_logprobs, strict=True))[
            1:
        ]:
            assert len(top) == 3
            assert value == top[name] if name in top else value <= min(top.values())
    assert found.usage.prompt_tokens_details.cached_tokens == 0
    first = found.choices[0].logprobs
    assert sum((chunk.choices[0].logprobs.token_logprobs for chunk in chunks), []) == first.token_logprobs
    assert "".join(chunk.choices[0].text for chunk in chunks) == text
    only = scored.choices[0]
    assert (only.text, only.finish_reason, scored.usage.completion_tokens) == (PROMPT, "length", 0)
    assert only.logprobs.token_logprobs == first.token_logprobs[: len(ids)]
    assert only.logprobs.text_offset == first.text_offset[: len(ids)]
    assert again.choices[0].text == own(demo)[0]


def test_the_offsets_of_a_long_prompt_are_those_of_its_text(demo):
    text = "def föö(日本, 😀):\n    return 1\n" * 20
    ids = demo.tokenize(text)
    expected = [len(demo.detokenize(ids[:i], skip_special_tokens=True)) for i in range(len(ids))]
    assert text_offsets(demo, ids) == expected


def test_a_stop_token_ends_it(client, demo):
    text, generation = own(demo)
    stop = generation.token_ids[4]
    found = client.completions.create(**GREEDY, extra_body={"stop_token_ids": [stop]}).choices[0]
    assert found.text == own(demo, stop_token_ids=[stop])[0] != text
    assert found.finish_reason == "stop"


@pytest.mark.parametrize("stream", [False, True])
def test_options_of_the_runner_are_fields_by_their_names(client, demo, stream):
    for options in [{"regex": "[a-f]{6}"}, {"top_k": 4, "min_p": 0.1, "seed": 2}, {"no_repeat_ngram_size": 1}]:
        asked = GREEDY | {"temperature": 1.5 if "seed" in options else 0}
        found = client.completions.create(**asked, stream=stream, extra_body=options)
        text = "".join(chunk.choices[0].text for chunk in found) if stream else found.choices[0].text
        temperature = asked["temperature"]
        assert text == demo.generate(PROMPT, max_new_tokens=10, temperature=temperature, **options).text(), options


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"prompt": ""}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt[0]"),
        ({"prompt": [1, 10**6]}, "prompt"),
        ({"prompt": [-1]}, "prompt"),
        ({"prompt": "x " * 3000}, "prompt"),
        ({"prompt": ["x"] * 17}, "prompt"),
        ({"prompt": ["x"] * 9, "n": 2}, "prompt"),
        ({"prompt": 5}, "prompt"),
        ({"suffix": "x"}, "suffix"),
        ({"best_of": 3}, "best_of"),
        ({"echo": True, "logprobs": 21}, "logprobs"),
        ({"logprobs": -1}, "logprobs"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"extra_body": {"top_k": -1}}, "top_k"),
        ({"extra_body": {"dry_sequence_breakers": [{}]}}, "dry_sequence_breakers"),
        ({"extra_body": {"regex": "("}}, "regex"),
    ],
)
def test_bad_requests_name_the_field(client, change, param):
    with pytest.raises(openai.BadRequestError) as raised:
        client.completions.create(**GREEDY | change)
    assert raised.value.body["param"] == param
