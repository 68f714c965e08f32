"""Completions with the official openai client; what is generated is compared with llm_runner's."""

from __future__ import annotations

import openai
import pytest

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


def test_a_stop_token_ends_it(client, demo):
    text, generation = own(demo)
    stop = generation.token_ids[4]
    found = client.completions.create(**GREEDY, extra_body={"stop_token_ids": [stop]}).choices[0]
    assert found.text == own(demo, stop_token_ids=[stop])[0] != text
    assert found.finish_reason == "stop"


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
        ({"echo": True, "logprobs": 1}, "echo"),
        ({"logprobs": -1}, "logprobs"),
        ({"max_tokens": 0}, "max_tokens"),
    ],
)
def test_bad_requests_name_the_field(client, change, param):
    with pytest.raises(openai.BadRequestError) as raised:
        client.completions.create(**GREEDY | change)
    assert raised.value.body["param"] == param
