"""A SentencePiece .model gives the ids, places and text of the sentencepiece library."""

from __future__ import annotations

import random
from pathlib import Path

import mistral_common
import pytest
import sentencepiece

from llm_tokenizer import Tokenizer
from tests.llm_tokenizer import oracle, texts

SHIPPED = sorted((Path(mistral_common.__file__).parent / "data").glob("*.model.*"))
OPTIONS = {
    "unigram": {"model_type": "unigram"},
    "bpe": {"model_type": "bpe"},
    "unigram_byte_fallback": {"model_type": "unigram", "byte_fallback": True, "character_coverage": 0.98},
    "bpe_byte_fallback": {"model_type": "bpe", "byte_fallback": True, "character_coverage": 0.98},
    "identity": {"model_type": "bpe", "normalization_rule_name": "identity", "remove_extra_whitespaces": False},
    "casefold": {"model_type": "unigram", "normalization_rule_name": "nmt_nfkc_cf"},
    "no_prefix": {"model_type": "unigram", "add_dummy_prefix": False},
    "no_prefix_spaces": {"model_type": "bpe", "add_dummy_prefix": False, "remove_extra_whitespaces": False},
    "suffix": {"model_type": "unigram", "treat_whitespace_as_suffix": True},
    "symbols": {"model_type": "bpe", "user_defined_symbols": ["zqz", "zqzk", "<sep>", "  two"], "control_symbols": ["<ctl>"]},
    "unigram_symbols": {"model_type": "unigram", "user_defined_symbols": ["zqz", "é!", "<sep>"], "control_symbols": ["<ctl>"]},
}  # fmt: skip


def assert_same(ours: Tokenizer, theirs: sentencepiece.SentencePieceProcessor, text: str) -> None:
    expected = theirs.encode(text, return_type="proto")
    ids = [piece.id for piece in expected.pieces]
    found = ours.encode(text)
    assert found.ids == ids, oracle.difference(text, found.ids, ids)
    characters = [at for at, c in enumerate(text) for _ in c.encode()] + [len(text)]
    places = [(characters[piece.begin], characters[piece.end]) for piece in expected.pieces]
    assert found.offsets == places, oracle.difference(text, found.offsets, places)
    assert ours.decode(ids) == theirs.decode(ids), repr(text[:200])


def assert_same_on_all_texts(ours: Tokenizer, theirs: sentencepiece.SentencePieceProcessor, step: int) -> None:
    rng = random.Random(3)
    size = 0
    candidates = [*texts.FIXED, *texts.every_code_point(step)]
    while size < oracle.MEGABYTES * 1e6:
        candidates.append(texts.random_text(rng))
        size += len(candidates[-1].encode())
    for text in candidates:
        assert_same(ours, theirs, text.replace("\0", ""))  # which ends a text in sentencepiece's character map


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_models_of_mistral(path):
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    assert_same_on_all_texts(Tokenizer.from_file(path), theirs, 37)


@pytest.mark.parametrize("name", OPTIONS)
def test_trained_models(name, tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join([*texts.SCRIPTS.values(), *(text[:20000] for text in texts.real_text()[:5])]))
    defaults = {"vocab_size": 900, "hard_vocab_limit": False, "minloglevel": 2, "character_coverage": 0.9995}
    if OPTIONS[name]["model_type"] == "bpe":
        defaults["hard_vocab_limit"] = True
    options = defaults | OPTIONS[name]
    sentencepiece.SentencePieceTrainer.train(input=str(corpus), model_prefix=str(tmp_path / "m"), **options)
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "m.model"))
    assert_same_on_all_texts(Tokenizer.from_file(tmp_path / "m.model"), theirs, 97)
