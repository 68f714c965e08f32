"""Every option of every component of `tokenizers`, each with every kind of value; what the library has is asked of it."""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import re

import pytest
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from tests.llm_tokenizer import corpus, oracle, texts, trained
from tests.llm_tokenizer.trained import TRIMMING, added, sequence, with_added

# The options that tests/llm_tokenizer compares, by the names that the constructors of the library have for them.
COMPARED = {
    "normalizers": {
        "BertNormalizer": "clean_text handle_chinese_chars strip_accents lowercase",
        "Prepend": "prepend", "Strip": "left right", "Precompiled": "precompiled_charsmap", "Replace": "pattern content",
        "Sequence": "normalizers", "NFD": "", "NFKD": "", "NFC": "", "NFKC": "", "Lowercase": "", "StripAccents": "", "Nmt": "",
        "ByteLevel": "",
    },
    "pre_tokenizers": {
        "ByteLevel": "add_prefix_space trim_offsets use_regex", "CharDelimiterSplit": "delimiter", "Digits": "individual_digits",
        "FixedLength": "length", "Metaspace": "replacement prepend_scheme split", "Punctuation": "behavior",
        "Sequence": "pretokenizers", "Split": "pattern behavior invert", "BertPreTokenizer": "", "UnicodeScripts": "",
        "Whitespace": "", "WhitespaceSplit": "",
    },
    "models": {
        # cache_capacity and vocab are no options of a file, nor are alpha and nbest_size; dropout, which draws lots, is refused.
        "BPE": "vocab merges cache_capacity dropout unk_token continuing_subword_prefix end_of_word_suffix fuse_unk byte_fallback"
        " ignore_merges",
        "Unigram": "vocab unk_id byte_fallback alpha nbest_size", "WordLevel": "vocab unk_token",
        "WordPiece": "vocab unk_token max_input_chars_per_word continuing_subword_prefix",
    },
    "processors": {
        "BertProcessing": "sep cls_token", "ByteLevel": "add_prefix_space trim_offsets use_regex",
        "RobertaProcessing": "sep cls_token trim_offsets add_prefix_space", "Sequence": "processors",
        "TemplateProcessing": "single pair special_tokens",
    },
    "decoders": {
        "ByteLevel": "", "Replace": "pattern content", "WordPiece": "prefix cleanup", "ByteFallback": "", "Fuse": "",
        "Strip": "content left right", "Metaspace": "replacement prepend_scheme split", "BPEDecoder": "suffix",
        "CTC": "pad_token word_delimiter_token cleanup", "Sequence": "decoders",
    },
}  # fmt: skip
NO_COMPONENTS = {"Normalizer", "PreTokenizer", "Model", "PostProcessor", "Decoder", "DecodeStream"}


@pytest.mark.parametrize("module", [normalizers, pre_tokenizers, models, processors, decoders])
def test_no_option_of_tokenizers_is_without_a_test(module):
    found = {}
    for name, component in vars(module).items():
        if not inspect.isclass(component) or name in NO_COMPONENTS:
            continue
        signature = getattr(component, "__text_signature__", None) or component.__init__.__text_signature__
        found[name] = set(re.findall(r"(\w+)\s*(?:[=:][^,]*)?[,)]", signature)) - {"self"}
    kind = module.__name__.rsplit(".", 1)[-1]
    assert found == {name: set(options.split()) for name, options in COMPARED[kind].items()}


def combinations(fixed: dict, **options: list) -> list[dict]:
    """Returns a description for each choice of values."""
    return [fixed | dict(zip(options, values, strict=True)) for values in itertools.product(*options.values())]


def shown(value: dict) -> str:
    return json.dumps(value)[:100]


@functools.cache
def some_texts() -> list[str]:
    return [*texts.FIXED, *next(iter(corpus.documents(0.06, 11, for_code_points=0)))]


def assert_same_on_some_texts(description: dict) -> None:
    ours, theirs = oracle.both(description)
    for add_special in (True, False):
        oracle.assert_same_batch(ours, theirs, some_texts(), add_special, not add_special)


def changed(base: str, **parts) -> dict:
    return json.loads(base) | parts


FLAGS = [False, True]
BEHAVIORS = ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
NORMALIZERS = [
    *combinations({"type": "BertNormalizer"}, clean_text=FLAGS, handle_chinese_chars=FLAGS, strip_accents=[None, False, True], lowercase=FLAGS),
    *combinations({"type": "Strip"}, strip_left=FLAGS, strip_right=FLAGS),
    *combinations({"type": "Prepend"}, prepend=["", " ", "ab", "\u00e9\U0001f600"]),
    *combinations({"type": "Replace"}, pattern=[{"String": "a"}, {"String": "  "}, {"Regex": "a+|\\s"}, {"Regex": "$"}], content=["", "x", "\u4e2d\u6587"]),
    sequence("normalizers"),
    sequence("normalizers", sequence("normalizers", {"type": "NFD"}), {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "NFC"}),
]  # fmt: skip


@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=shown)
def test_normalizers(normalizer):
    assert_same_on_some_texts(with_added(changed(trained.bpe(byte_fallback=True), normalizer=normalizer)))


PRETOKENIZERS = [
    *combinations({"type": "ByteLevel"}, add_prefix_space=FLAGS, trim_offsets=FLAGS, use_regex=FLAGS),
    *combinations({"type": "CharDelimiterSplit"}, delimiter=["a", " ", "\n", "\u4e00", "\U0001f600"]),
    *combinations({"type": "FixedLength"}, length=[1, 2, 5, 1000]),
    *combinations({"type": "Metaspace"}, replacement=["\u2581", "_", "\U0001f600"], prepend_scheme=["always", "never", "first"], split=FLAGS),
    {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True},
    *combinations({"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True}, prepend_scheme=["always", "first"]),
    {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": False, "prepend_scheme": "never"},
    *combinations({"type": "Split"}, pattern=[{"String": "e"}, {"String": "\u0915"}, {"Regex": "\\d+|\\p{Lu}"}], behavior=BEHAVIORS, invert=FLAGS),
    sequence("pretokenizers"),
    sequence("pretokenizers", sequence("pretokenizers", {"type": "Digits", "individual_digits": True}), {"type": "UnicodeScripts"}),
]  # fmt: skip


@pytest.mark.parametrize("pretokenizer", PRETOKENIZERS, ids=shown)
def test_pretokenizers(pretokenizer):
    base = trained.bpe(byte_fallback=True)
    assert_same_on_some_texts(with_added(changed(base, pre_tokenizer=pretokenizer, decoder=None)))


BPE = combinations({}, unk_token=[None, "<unk>"], fuse_unk=FLAGS, byte_fallback=FLAGS, ignore_merges=FLAGS)


@pytest.mark.parametrize("options", BPE, ids=shown)
def test_bpe(options):
    description = changed(trained.bpe(byte_fallback=True))
    description["model"] |= options
    assert_same_on_some_texts(description)


@pytest.mark.parametrize(
    "affixes", combinations({}, continuing_subword_prefix=["##", "e"], end_of_word_suffix=["</w>", "\u00e9"]), ids=shown
)
def test_affixes_of_bpe(affixes):
    for one in [affixes] + [{name: value} for name, value in affixes.items()]:
        description = json.loads(trained.bpe(**one))
        for fuse_unk, ignore_merges in itertools.product(FLAGS, FLAGS):
            description["model"] |= {"fuse_unk": fuse_unk, "ignore_merges": ignore_merges}
            assert_same_on_some_texts(description)


@pytest.mark.parametrize(
    "options",
    combinations({}, continuing_subword_prefix=["##", "", "e"], max_input_chars_per_word=[1, 4, 100]),
    ids=shown,
)
def test_wordpiece(options):
    description = json.loads(trained.wordpiece())
    description["model"] |= options
    assert_same_on_some_texts(description)


@pytest.mark.parametrize("options", combinations({}, unk_id=[0, 3, None], byte_fallback=FLAGS), ids=shown)
def test_unigram(options):
    description = json.loads(trained.unigram(True))
    description["model"] |= options
    assert_same_on_some_texts(description)


def test_options_of_unigram_that_files_do_not_hold_are_passed_over():
    description = json.loads(trained.unigram())
    description["model"] |= {"alpha": 0.5, "nbest_size": 4}
    assert_same_on_some_texts(description)


def test_wordlevel_without_its_unknown_token():
    description = json.loads(trained.wordlevel())
    description["model"]["unk_token"] = "not there"
    assert_same_on_some_texts(description)


PROCESSORS = [
    *combinations({"type": "ByteLevel"}, add_prefix_space=FLAGS, trim_offsets=FLAGS, use_regex=FLAGS),
    *combinations(
        {"type": "RobertaProcessing", "sep": ["x", 9], "cls": ["y", 8]}, trim_offsets=FLAGS, add_prefix_space=FLAGS
    ),
    {"type": "BertProcessing", "sep": ["x", 9], "cls": ["y", 8]},
    sequence("processors"),
]


@pytest.mark.parametrize("pretokenizer", [TRIMMING, TRIMMING | {"add_prefix_space": False}], ids=["prefix", "none"])
@pytest.mark.parametrize("processor", PROCESSORS, ids=shown)
def test_processors(processor, pretokenizer):
    assert_same_on_some_texts(changed(trained.byte_level(), pre_tokenizer=pretokenizer, post_processor=processor))


DECODERS = [
    *combinations({"type": "WordPiece"}, prefix=["##", "", "e"], cleanup=FLAGS),
    *combinations({"type": "Strip"}, content=[" ", "e", "\u2581"], start=[0, 1, 3], stop=[0]),
    *combinations({"type": "Metaspace"}, replacement=["\u2581", "e"], prepend_scheme=["always", "never", "first"], split=FLAGS),
    *combinations({"type": "BPEDecoder"}, suffix=["</w>", "e", ""]),
    *combinations({"type": "CTC"}, pad_token=["<pad>", "e"], word_delimiter_token=["|", "\u2581", "a"], cleanup=FLAGS),
    *combinations({"type": "Replace"}, pattern=[{"String": "\u2581"}, {"String": "e"}, {"Regex": "[aeiou]"}], content=["", " ", "\u4e2d"]),
    sequence("decoders"),
    sequence("decoders", {"type": "ByteFallback"}, {"type": "Fuse"}, sequence("decoders", {"type": "Strip", "content": " ", "start": 1, "stop": 0})),
]  # fmt: skip


@pytest.mark.parametrize("decoder", DECODERS, ids=shown)
def test_decoders(decoder):
    assert_same_on_some_texts(with_added(changed(trained.bpe(byte_fallback=True), decoder=decoder)))


TOKENS = ["zqz", " two", "e", "Word", "\u00e9!", "<s>"]


@pytest.mark.parametrize("normalizer", [None, {"type": "Lowercase"}, {"type": "NFD"}], ids=shown)
@pytest.mark.parametrize(
    "flags", combinations({}, single_word=FLAGS, lstrip=FLAGS, rstrip=FLAGS, normalized=FLAGS, special=FLAGS), ids=shown
)
def test_flags_of_added_tokens(flags, normalizer):
    description = changed(trained.byte_level(), normalizer=normalizer)
    assert_same_on_some_texts(with_added(description, [added(token, **flags) for token in TOKENS]))
