"""Beam search gives transformers' sequences and scores."""

import numpy as np
import pytest
import torch
from transformers import GenerationConfig

from llm_runner import ArgumentError

PROMPT = "import os\n\n\ndef main(path):\n    return "
SETTINGS = [
    {"num_beams": 1},
    {"num_beams": 2},
    {"num_beams": 4, "num_return_sequences": 4},
    {"num_beams": 5, "num_return_sequences": 3, "length_penalty": 2.0},
    {"num_beams": 3, "num_return_sequences": 2, "length_penalty": -1.0},
    {"num_beams": 4, "early_stopping": True, "num_return_sequences": 4},
    {"num_beams": 4, "early_stopping": "never", "length_penalty": 0.5},
    {"num_beams": 4, "no_repeat_ngram_size": 2},
    {"num_beams": 4, "num_return_sequences": 4, "repetition_penalty": 1.3},
    {"num_beams": 4, "min_new_tokens": 6},
]


@pytest.fixture(scope="module")
def models(demo, with_metadata):
    """The demo model, and one whose sequences end at a newline."""
    newline = demo.tokenize("\n", add_special_tokens=False)[-1]
    return {"demo": demo, "newline": with_metadata(eos_token_ids=[newline])}


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", ["demo", "newline"])
def test_sequences_and_scores_are_those_of_transformers(models, eager, settings, name):
    model = models[name]
    ids = model.tokenize(PROMPT)
    eos = model.generation_config["eos_token_id"]
    config = GenerationConfig(
        max_new_tokens=16, do_sample=False, eos_token_id=eos, pad_token_id=eos[0], output_scores=True,
        return_dict_in_generate=True, **settings,
    )  # fmt: skip
    with torch.no_grad():
        expected = eager.generate(torch.tensor([ids]), generation_config=config)
    with model.session(kv_dtype="float32") as session:
        found = session.beam_search(ids, max_new_tokens=16, **settings)
        assert session.tokens == [*ids, *found[0].token_ids[:-1]]
        rest = [row[len(ids) :].tolist() for row in expected.sequences]
        rest = [row[: row.index(eos[0]) + 1] if eos[0] in row else row for row in rest]
        assert [beam.token_ids for beam in found] == rest
        if settings["num_beams"] > 1:
            np.testing.assert_allclose([beam.score for beam in found], expected.sequences_scores, atol=2e-3)
        assert [beam.text for beam in found] == [model.detokenize(row, True) for row in rest]


def test_a_session_with_tokens_goes_on(demo):
    ids = demo.tokenize(PROMPT)
    with demo.session() as session, demo.session() as other:
        session.append(ids)
        assert session.beam_search(max_new_tokens=8) == other.beam_search(ids, max_new_tokens=8)
        assert "".join(session.generate(max_new_tokens=4, do_sample=False)) == "".join(
            other.generate(max_new_tokens=4, do_sample=False)
        )


def test_bad_options_are_named(demo):
    with demo.session() as session:
        for options, message in [
            ({"num_beams": 0}, "num_beams = 0"),
            ({"num_beams": 65}, "num_beams = 65"),
            ({"num_return_sequences": 5}, "num_return_sequences = 5: must be 1..4"),
            ({"length_penalty": float("nan")}, "length_penalty"),
            ({"early_stopping": "soon"}, 'early_stopping = "soon": must be one of false, true, never'),
            (
                {"context_length": 5},
                "there is no option 'context_length' here, it is one of a session: must be one of .*num_beams",
            ),
        ]:
            with pytest.raises(ArgumentError, match=message):
                session.beam_search(PROMPT, **options)
        with pytest.raises(ArgumentError, match="no tokens"):
            session.beam_search([])
