"""Every component that `tokenizers` knows gives its ids, its offsets and its text."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from pathlib import Path

import pytest

from tests.llm_tokenizer import oracle, texts, trained
from tests.llm_tokenizer.trained import ADDED, BYTE_LEVEL, TRIMMING, sequence, split, with_added


def changed(base: str, **parts) -> dict:
    return json.loads(base) | parts


def charsmap() -> str:
    """The nmt_nfkc_cf character map of sentencepiece, from a model that is trained for it."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus.txt"
        corpus.write_text("\n".join(texts.SCRIPTS.values()))
        sentencepiece.SentencePieceTrainer.train(
            input=str(corpus), model_prefix=os.path.join(folder, "m"), vocab_size=400, hard_vocab_limit=False,
            normalization_rule_name="nmt_nfkc_cf", minloglevel=2,
        )  # fmt: skip
        proto = sentencepiece_model_pb2.ModelProto()
        proto.ParseFromString((Path(folder) / "m.model").read_bytes())
        return base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()


def bert(**flags) -> dict:
    on = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
    return {"type": "BertNormalizer"} | on | flags


NORMALIZERS = {
    **{name.lower(): {"type": name} for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt")},
    "byte_level": {"type": "ByteLevel"},
    "strip": {"type": "Strip", "strip_left": True, "strip_right": True},
    "strip_left": {"type": "Strip", "strip_left": True, "strip_right": False},
    "strip_right": {"type": "Strip", "strip_left": False, "strip_right": True},
    "replace": {"type": "Replace", "pattern": {"String": "e"}, "content": "\u2581x"},
    "replace_regex": {"type": "Replace", "pattern": {"Regex": r"\s+|\p{Lu}"}, "content": " "},
    "remove": {"type": "Replace", "pattern": {"Regex": "[aeiou ]"}, "content": ""},
    "prepend": {"type": "Prepend", "prepend": "\u2581é"},
    "bert": bert(),
    "bert_cased": bert(lowercase=False),
    "bert_accents": bert(strip_accents=True, lowercase=False, clean_text=False),
    "bert_plain": bert(strip_accents=False, handle_chinese_chars=False),
    "nfkd_strip_accents": sequence("normalizers", {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}),
    "llama": sequence(
        "normalizers",
        {"type": "Prepend", "prepend": "\u2581"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
    ),
}


@pytest.mark.parametrize("name", NORMALIZERS)
def test_normalizers(name):
    description = with_added(changed(trained.bpe(byte_fallback=True), normalizer=NORMALIZERS[name]))
    oracle.assert_same_on_all_texts(*oracle.both(description), step=97)


def test_precompiled():
    normalizer = {"type": "Precompiled", "precompiled_charsmap": charsmap()}
    oracle.assert_same_on_all_texts(*oracle.both(changed(trained.unigram(), normalizer=normalizer)), step=37)


def metaspace(scheme: str, split: bool = True) -> dict:
    return {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": split}


PRETOKENIZERS = {
    **{name.lower(): {"type": name} for name in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer", "UnicodeScripts")},
    **{
        f"punctuation_{behavior}": {"type": "Punctuation", "behavior": behavior}
        for behavior in ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
    },
    **{
        f"split_{behavior}_{invert}": split(r"\s|[aeiou]", behavior, invert)
        for behavior in ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
        for invert in (False, True)
    },
    "split_text": split(" ", "MergedWithPrevious", kind="String"),
    "split_words": split(r"\w+|[^\w\s]+", "Removed", True),
    "digits": {"type": "Digits", "individual_digits": False},
    "digits_individual": {"type": "Digits", "individual_digits": True},
    "delimiter": {"type": "CharDelimiterSplit", "delimiter": "e"},
    "fixed_length": {"type": "FixedLength", "length": 3},
    **{f"metaspace_{scheme}": metaspace(scheme) for scheme in ("always", "never", "first")},
    "metaspace_whole": metaspace("always", False),
    "byte_level": TRIMMING,
    "byte_level_whole": BYTE_LEVEL,
    "sequence": sequence("pretokenizers", {"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Isolated"}, metaspace("first")),
    "byte_level_first": sequence("pretokenizers", TRIMMING, {"type": "Digits", "individual_digits": True}),
}  # fmt: skip


@pytest.mark.parametrize("name", PRETOKENIZERS)
def test_pretokenizers(name):
    description = with_added(changed(trained.bpe(byte_fallback=True), pre_tokenizer=PRETOKENIZERS[name], decoder=None))
    oracle.assert_same_on_all_texts(*oracle.both(description), step=97)


PATTERNS = {
    name: sequence("pretokenizers", split(pattern), BYTE_LEVEL) for name, pattern in trained.PATTERNS.items()
} | {
    "deepseek": trained.DEEPSEEK,
    "falcon": trained.FALCON,
    "command_r": trained.COMMAND_R,
    "prefix_space": TRIMMING,
}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_of_models(name):
    description = changed(trained.byte_level(), pre_tokenizer=PATTERNS[name])
    oracle.assert_same_on_all_texts(*oracle.both(description), step=11)


MODELS = {
    "bpe": lambda: trained.bpe(),
    "bpe_fuse_unk": lambda: trained.bpe(fuse_unk=True),
    "bpe_byte_fallback": lambda: trained.bpe(byte_fallback=True),
    "bpe_ignore_merges": lambda: trained.bpe(ignore_merges=True, byte_fallback=True, fuse_unk=True),
    "bpe_no_unk": lambda: trained.bpe(unk_token=None),
    "bpe_prefix": lambda: trained.bpe(continuing_subword_prefix="##"),
    "bpe_suffix": lambda: trained.bpe(end_of_word_suffix="</w>"),
    "byte_level": lambda: trained.byte_level(),
    "unigram": lambda: trained.unigram(),
    "unigram_byte_fallback": lambda: trained.unigram(True),
    "wordpiece": lambda: trained.wordpiece(),
    "wordlevel": lambda: trained.wordlevel(),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    oracle.assert_same_on_all_texts(*oracle.both(MODELS[name]()), step=37)


def template(*pieces: str) -> dict:
    single = [
        {"Sequence": {"id": "A", "type_id": 0}} if p == "A" else {"SpecialToken": {"id": p, "type_id": 0}}
        for p in pieces
    ]
    tokens = {p: {"id": p, "ids": [i + 1], "tokens": [p]} for i, p in enumerate(pieces) if p != "A"}
    pair = [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens}


ROBERTA = {
    "type": "RobertaProcessing",
    "sep": ["</s>", 2],
    "cls": ["<s>", 0],
    "trim_offsets": True,
    "add_prefix_space": True,
}
PROCESSORS = {
    "trim": TRIMMING,
    "trim_without_prefix": TRIMMING | {"add_prefix_space": False},
    "template": template("<s>", "A", "</s>"),
    "template_twice": template("A", "<s>", "A"),
    "template_without_text": template("<s>"),
    "bert": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
    "roberta": ROBERTA,
    "roberta_without_trimming": ROBERTA | {"trim_offsets": False},
    "trim_then_template": sequence("processors", TRIMMING, template("<s>", "A", "</s>")),
    "template_then_trim": sequence("processors", template("<s>", "A"), TRIMMING | {"add_prefix_space": False}),
}


@pytest.mark.parametrize("name", PROCESSORS)
def test_processors(name):
    description = changed(trained.byte_level(), pre_tokenizer=TRIMMING, post_processor=PROCESSORS[name])
    oracle.assert_same_on_all_texts(*oracle.both(description), step=997)


def strip(start: int, stop: int) -> dict:
    return {"type": "Strip", "content": " ", "start": start, "stop": stop}


def replace(pattern: dict, content: str) -> dict:
    return {"type": "Replace", "pattern": pattern, "content": content}


DECODERS = {
    "none": None,
    "byte_level": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    "wordpiece": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    "wordpiece_as_it_is": {"type": "WordPiece", "prefix": "a", "cleanup": False},
    "metaspace_never": metaspace("never"),
    "bpe": {"type": "BPEDecoder", "suffix": "\u2581"},
    "ctc": {"type": "CTC", "pad_token": "e", "word_delimiter_token": "\u2581", "cleanup": True},
    "ctc_as_it_is": {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": False},
    "fuse": {"type": "Fuse"},
    "byte_fallback": {"type": "ByteFallback"},
    "llama": sequence(
        "decoders", replace({"String": "\u2581"}, " "), {"type": "ByteFallback"}, {"type": "Fuse"}, strip(1, 0)
    ),
    "replace_regex": replace({"Regex": "[aeiou]+"}, "_"),
    "strip_tokens": sequence("decoders", replace({"String": "\u2581"}, " "), strip(2, 0)),
}


@pytest.mark.parametrize("name", DECODERS)
def test_decoders(name):
    description = with_added(changed(trained.bpe(byte_fallback=True), decoder=DECODERS[name]))
    oracle.assert_same_on_all_texts(*oracle.both(description), step=997)


@pytest.mark.parametrize("normalizer", [None, {"type": "Lowercase"}, NORMALIZERS["llama"]])
def test_added_tokens(normalizer):
    tokens = [
        token | {"special": special, "normalized": normalized}
        for token in ADDED
        for special in (False, True)
        for normalized in (False, True)
    ][::3]
    unique = {token["content"]: token for token in [*ADDED, *tokens]}
    description = with_added(
        changed(trained.byte_level(), normalizer=normalizer) | {"added_tokens": []}, list(unique.values())
    )
    oracle.assert_same_on_all_texts(*oracle.both(description), step=997)
