"""Every component that `tokenizers` knows gives its ids, its offsets and its text."""

from __future__ import annotations

import base64
import json
import os
import random
import tempfile
from pathlib import Path

import pytest

from llm_tokenizer import Encoding
from tests.llm_tokenizer import corpus, oracle, texts, trained
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
    oracle.assert_same_on_all_texts(*oracle.both(description), oracle.COMPONENT_SHARE)


def test_precompiled():
    normalizer = {"type": "Precompiled", "precompiled_charsmap": charsmap()}
    oracle.assert_same_on_all_texts(*oracle.both(changed(trained.unigram(), normalizer=normalizer)))


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
    oracle.assert_same_on_all_texts(*oracle.both(description), oracle.COMPONENT_SHARE)


PATTERNS = {
    name: sequence("pretokenizers", split(pattern), BYTE_LEVEL) for name, pattern in trained.PATTERNS.items()
} | {
    "deepseek": trained.deepseek(),
    "deepseek_by_regex": trained.deepseek(trained.DEEPSEEK_WORDS.replace('"', r"\"")),
    **{
        f"regex_{name}": sequence("pretokenizers", split(pattern), BYTE_LEVEL)
        for name, pattern in {
            "repeated_interval": r"\p{L}{3}+|\p{L}|[0-9]{2}+x?|\s",
            "exact_interval": r"\p{L}{3}?x|\S{,2}a|(?:ab|\d){2}+|\s",
            "borders": r"^\w+|\w+$|\b\w|\w\b|\B\w\B|\W+",
            "outside": r"\P{L}{1,4}|\p{^Lu}\p{Lu}?",
            "braces": r"\{[^{}]*\}|a{|\w+",
            "gpt2_possessive": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
        }.items()
    },
    "falcon": trained.FALCON,
    "command_r": trained.COMMAND_R,
    "prefix_space": TRIMMING,
}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_of_models(name):
    description = changed(trained.byte_level(), pre_tokenizer=PATTERNS[name])
    oracle.assert_same_on_all_texts(*oracle.both(description))


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


def unigram_ties() -> dict:
    """Pairs of letters that are a token or two by the last bit of a number of 17 to 19 digits, which `tokenizers` does not round."""
    rng = random.Random(2)
    vocab = [["<unk>", 0]]
    for code in range(0x4E00, 0x5200):
        score = str(rng.randrange(1, 30)) + "." + str(rng.getrandbits(64))[: rng.randrange(15, 18)]
        near = score[:-1] + rng.choice("0123456789")
        vocab += [[chr(code), f"-{score}"], [chr(code + 0x1000), 0], [chr(code) + chr(code + 0x1000), f"-{near}"]]
    text = ",".join(f'["{token}",{score}]' for token, score in vocab)
    model = f'{{"type":"Unigram","unk_id":0,"byte_fallback":false,"vocab":[{text}]}}'
    return json.dumps(changed(trained.unigram(), pre_tokenizer=None, model="MODEL")).replace('"MODEL"', model)


def test_numbers_of_a_unigram_model_are_read_as_tokenizers_reads_them():
    ours, theirs = oracle.both(unigram_ties())
    batch = [chr(code) + chr(code + 0x1000) for code in range(0x4E00, 0x5200)]
    expected = [encoding.ids for encoding in theirs.encode_batch(batch)]
    assert {len(ids) for ids in expected} == {1, 2}
    assert [encoding.ids for encoding in ours.encode_batch(batch)] == expected


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    oracle.assert_same_on_all_texts(*oracle.both(MODELS[name]()))


def template(*pieces: str, pair: tuple[str, ...] = ("A", "B:1")) -> dict:
    """A TemplateProcessing; each piece is a sequence or a special token, behind a colon its type id."""

    def piece(text: str) -> dict:
        name, _, type_id = text.partition(":")
        kind = "Sequence" if name in ("A", "B") else "SpecialToken"
        return {kind: {"id": name, "type_id": int(type_id or 0)}}

    names = {text.partition(":")[0] for text in (*pieces, *pair)} - {"A", "B"}
    tokens = {name: {"id": name, "ids": [i + 1], "tokens": [name]} for i, name in enumerate(sorted(names))}
    if "twin" in names:
        tokens["twin"] |= {"ids": [5, 6], "tokens": ["x", "y"]}
    single = [piece(text) for text in pieces]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [piece(text) for text in pair],
        "special_tokens": tokens,
    }


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
    "template_of_types": template("<s>:3", "A:2", pair=("<s>:7", "B:9", "<s>:8", "A:4", "</s>:1")),
    "template_of_several_ids": template("twin", "A", "twin:1", pair=("A", "twin:5", "B:1", "twin")),
    "template_of_no_pair": template("A", pair=()),
    "template_of_the_second": template("A", pair=("B:3",)),
    "template_then_roberta": sequence("processors", template("twin", "A", pair=("A", "twin", "B:1")), ROBERTA),
    "template_then_bert": sequence(
        "processors", template("twin", "A", "A"), {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]}
    ),
    "bert_then_template": sequence(
        "processors",
        {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
        template("<s>", "A", pair=("A:4", "<s>:2", "B")),
    ),
    "bert": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
    "roberta": ROBERTA,
    "roberta_without_trimming": ROBERTA | {"trim_offsets": False},
    "roberta_without_prefix": ROBERTA | {"add_prefix_space": False},
    "none": None,
    "trim_then_template": sequence("processors", TRIMMING, template("<s>", "A", "</s>")),
    "template_then_trim": sequence("processors", template("<s>", "A"), TRIMMING | {"add_prefix_space": False}),
}


@pytest.mark.parametrize("name", PROCESSORS)
def test_processors(name):
    description = changed(trained.byte_level(), pre_tokenizer=TRIMMING, post_processor=PROCESSORS[name])
    oracle.assert_same_on_all_texts(*oracle.both(description), oracle.COMPONENT_SHARE)


@pytest.mark.parametrize("name", PROCESSORS)
def test_pairs(name):
    ours, theirs = oracle.both(changed(trained.byte_level(), pre_tokenizer=TRIMMING, post_processor=PROCESSORS[name]))
    batch = [*texts.FIXED, *next(iter(corpus.documents(0.4, 9, for_code_points=0)))]
    pairs = list(zip(batch, batch[5:] + batch[:5], strict=True))
    for add_special in (True, False):
        expected = theirs.encode_batch(pairs, add_special_tokens=add_special)
        found = ours.encode_batch(pairs, add_special_tokens=add_special)
        for pair, ours_one, theirs_one in zip(pairs, found, expected, strict=True):
            assert ours_one == Encoding(theirs_one.ids, theirs_one.offsets, theirs_one.type_ids), pair
    text, pair = pairs[3]
    assert ours.encode(text, pair) == ours.encode_batch([(text, pair)])[0]


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
    oracle.assert_same_on_all_texts(*oracle.both(description), oracle.COMPONENT_SHARE)


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
    oracle.assert_same_on_all_texts(*oracle.both(description), oracle.COMPONENT_SHARE)
