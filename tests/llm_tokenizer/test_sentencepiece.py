"""A SentencePiece .model gives the ids, places and text of the sentencepiece library."""

from __future__ import annotations

import random
from pathlib import Path

import mistral_common
import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from llm_tokenizer import Tokenizer
from tests.llm_tokenizer import corpus, oracle, texts

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


def assert_same_on_all_texts(ours: Tokenizer, theirs: sentencepiece.SentencePieceProcessor) -> None:
    for text in texts.FIXED:
        assert_same(ours, theirs, without_zero(text))
    for documents in corpus.documents(oracle.MEGABYTES, oracle.SEED + 3):
        batch = [without_zero(text) for text in documents]
        expected = theirs.encode(batch, return_type="offset_mapping", num_threads=1)
        ids = [encoding["ids"] for encoding in expected]
        encoded = ours.encode_batch(batch)
        same = [encoding.ids for encoding in encoded] == ids
        same = same and [encoding.offsets for encoding in encoded] == [encoding["offsets"] for encoding in expected]
        same = same and [ours.encode_ids(text) for text in batch] == ids
        if not same or ours.decode_batch(ids) != theirs.decode(ids, num_threads=1):
            oracle.fail_on_shortest(batch, lambda text: assert_same(ours, theirs, text))


def without_zero(text: str) -> str:
    """Zero ends a text in the character map of sentencepiece."""
    return text.replace("\0", "")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_models_of_mistral(path):
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    assert_same_on_all_texts(Tokenizer.from_file(path), theirs)


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
    assert_same_on_all_texts(Tokenizer.from_file(tmp_path / "m.model"), theirs)


def unigram_model(scores: dict[str, float], user_defined: list[str]) -> bytes:
    """A SentencePiece Unigram model with these pieces; spaces stay as they are."""
    proto = sentencepiece_model_pb2.ModelProto()
    proto.trainer_spec.model_type = 1
    proto.normalizer_spec.name = "identity"
    proto.normalizer_spec.add_dummy_prefix = False
    proto.normalizer_spec.escape_whitespaces = False
    proto.normalizer_spec.remove_extra_whitespaces = False
    kinds = proto.SentencePiece
    reserved = [("<unk>", 0.0, kinds.UNKNOWN), ("<s>", 0.0, kinds.CONTROL), ("</s>", 0.0, kinds.CONTROL)]
    symbols = [(piece, 0.0, kinds.USER_DEFINED) for piece in user_defined]
    for piece, score, kind in [*reserved, *symbols, *((piece, score, kinds.NORMAL) for piece, score in scores.items())]:
        proto.pieces.add(piece=piece, score=score, type=kind)
    return proto.SerializeToString()


@pytest.mark.parametrize("seed", range(20))
def test_paths_that_differ_by_a_rounding(seed, tmp_path):
    """User-defined symbols that overlap leave paths of the same pieces in another order."""
    rng = random.Random(seed)
    scores = {piece: rng.uniform(-12, -1 if seed % 4 else 3) for piece in ("z", "q", "a", "é", "aa", "aaa", "qa", "za")}
    model = unigram_model(scores, ["zqz", "éqqé", "qaaaaaq", "aqa"])
    (tmp_path / "m.model").write_bytes(model)
    ours = Tokenizer.from_file(tmp_path / "m.model")
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model)
    for _ in range(300):
        assert_same(ours, theirs, "".join(rng.choices("zqaéx", (4, 4, 4, 1, 0.1), k=rng.randint(1, 40))))
