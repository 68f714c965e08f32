"""Speculative decoding changes speed and nothing else: proposals from the text and from a draft model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_export.api import export
from llm_runner import ArgumentError, Model
from tests.contracts.architectures import save_tiny_checkpoint

ROOT = Path(__file__).resolve().parents[2]
PROMPT = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n\n\ndef "
# Windows that the text outgrows, soft-caps, several ropes, experts, recurrent states.
ARCHITECTURES = ("gemma3_text", "llama", "qwen3_moe", "qwen3_5_text", "lfm2")


@pytest.fixture(scope="module")
def draft(tmp_path_factory) -> Model:
    path = tmp_path_factory.mktemp("draft") / "draft.mote"
    export(str(ROOT / "examples" / "demo-draft"), path, recipe="none")
    return Model.load(path)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """tiny(name) -> a random model of a row of tests/contracts, without a tokenizer."""
    made: dict[str, Model] = {}

    def make(name: str) -> Model:
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            save_tiny_checkpoint(name, folder)
            export(str(folder), folder / "tiny.mote", recipe="none")
            made[name] = Model.load(folder / "tiny.mote")
        return made[name]

    return make


def run(model: Model, prompt, **options):
    generation = model.generate(prompt, ignore_eos=True, max_new_tokens=48, **options)
    text = generation.text()
    return text, generation.token_ids, generation.statistics


OPTIONS = st.fixed_dictionaries(
    {
        "speculative": st.sampled_from(["auto", "lookup"]),
        "draft_tokens": st.integers(0, 8),
        "seed": st.integers(0, 100),
    },
    optional={
        "temperature": st.floats(0.1, 1.5),
        "top_k": st.integers(1, 20),
        "top_p": st.floats(0.2, 1.0),
        "repetition_penalty": st.floats(0.9, 1.3),
        "no_repeat_ngram_size": st.integers(2, 5),
    },
)


@pytest.mark.parametrize("name", ARCHITECTURES)
@settings(max_examples=10, deadline=None)
@given(options=OPTIONS, prompt=st.lists(st.integers(3, 9), min_size=2, max_size=12))
def test_every_architecture_gives_the_same_with_and_without(tiny, name, options, prompt):
    model = tiny(name)
    options = {"seed": 1, **options, "context_length": 64}
    plain = run(model, prompt, **{**options, "speculative": "off"})
    assert run(model, prompt, **options)[1] == plain[1]


@pytest.mark.parametrize(
    "name, reason", [("lfm2", "rewind_tokens and rewind_mb leave the recurrent state no way back")]
)
def test_models_that_cannot_go_back_decode_one_token_at_a_time_and_say_why(tiny, name, reason):
    with tiny(name).session(rewind_tokens=0) as session:
        generation = session.generate([3, 4, 3, 4], max_new_tokens=20, ignore_eos=True, speculative="auto")
        generation.text()
        assert reason in generation.statistics["speculative_off_reason"]
        assert generation.statistics["num_drafts"] == 0
        with pytest.raises(ArgumentError, match=f"speculative = lookup: .*{reason}"):
            session.generate([3, 4], speculative="lookup")


@pytest.mark.parametrize("mode", ["auto", "lookup", "draft"])
def test_the_demo_writes_the_same_text(demo, draft, mode):
    for options in ({"do_sample": False}, {"temperature": 0.8, "seed": 3}, {"repetition_penalty": 1.1, "seed": 4}):
        plain = run(demo, PROMPT, speculative="off", **options)
        fast = run(demo, PROMPT, speculative=mode, draft_tokens=4, draft_model=draft, **options)
        assert fast[:2] == plain[:2]
        statistics = fast[2]
        assert 0 < statistics["accepted_tokens"] <= statistics["proposed_tokens"] <= 4 * statistics["num_drafts"]
        assert statistics["mean_run_length"] == 1 + statistics["accepted_tokens"] / statistics["num_drafts"]
        assert statistics["speculative_off_reason"] is None
        assert plain[2]["proposed_tokens"] == 0 and plain[2]["speculative_off_reason"] == "it was turned off"


def test_a_draft_model_stays_with_its_session(demo, draft):
    with demo.session(draft_model=draft) as session, demo.session() as plain:
        for prompt in (PROMPT, "mul(a, b):\n", "\n\nclass "):
            fast = session.generate(prompt, max_new_tokens=20, do_sample=False, speculative="draft", draft_tokens=3)
            expected = plain.generate(prompt, max_new_tokens=20, do_sample=False, speculative="off")
            for piece, other in zip(fast, expected, strict=True):
                assert piece == other and session.tokens == plain.tokens
        session.set_draft_model(None)
        with pytest.raises(ArgumentError, match="no draft model"):
            session.generate("x", speculative="draft")


def test_a_draft_model_with_other_tokens_is_refused_by_the_first_of_them(demo, with_tokenizer, tiny):
    tokenizer = json.loads((ROOT / "examples" / "demo" / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    a, b = (next(text for text, id in vocabulary.items() if id == wanted) for wanted in (70, 71))
    vocabulary[a], vocabulary[b] = 71, 70
    other = with_tokenizer(json.dumps(tokenizer).encode())
    with pytest.raises(ArgumentError, match=r"token 70 is .* in .* it is .* the same tokenizer"):
        demo.session(draft_model=other)
    with pytest.raises(ArgumentError, match="has none"):
        demo.session(draft_model=tiny("llama"))


@pytest.mark.parametrize("options, message", [
    ({"speculative": "fast"}, 'speculative = "fast": must be one of auto, off, lookup, draft, mtp'),
    ({"draft_tokens": 32}, "draft_tokens = 32: must be an integer, 0..31"),
    ({"draft_tokens": -1}, "draft_tokens = -1"),
    ({"speculative": "draft"}, "no draft model"),
])  # fmt: skip
def test_bad_options_are_refused_by_name(demo, options, message):
    with pytest.raises(ArgumentError, match=message):
        demo.generate("x", **options)
