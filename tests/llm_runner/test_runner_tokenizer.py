"""Ids and text are those of the `tokenizers` library reading the same file."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from llm_runner import TokenizerError, check_tokenizer
from tests import vocabularies

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"
ROOT = DEMO.parents[1]
DEMO_JSON = (DEMO / "tokenizer.json").read_bytes()
TEXTS = [
    "",
    " ",
    "Hello, world! It's 3 o'clock; we'll go. I'D SAY SO",
    "  leading and trailing  \n\n\n\ttabs\r\n  ",
    "def f(x):\n    return x ** 2  # comment\n\n\nclass A:\n        pass\n",
    "123456789 1,234.5 ½ ² ٣٤٥",
    "Grüße, ça va? naïve e\u0301 résumé Å Å \u1e9b\u0323",
    "日本語のテキスト。中文字符 한국어 العربية עברית हिन्दी ไทย",
    "😀👩‍👩‍👧‍👦🏳️‍🌈 \U0001f1e9\U0001f1ea",
    "a\u00a0b\u2003c\u3000d\u200be\ufefff\u180eg",
    "\x00\x01\x7f\x80 \ufffd \ue000 \U0010ffff",
    "ſ 'ſ K 'S 'LL ’s",
    "<|im_start|>user\nhi<|im_end|> <|endoftext|><|begin_of_text|> <|eot_id|>",
    "zqz zqzx azqz zqzk, word words  two \n é! e\u0301!  word",
    "a" * 5000,
    " " * 3000 + "x",
]


def assert_same(model, oracle: Tokenizer, text: str) -> None:
    for add_special in (True, False):
        expected = oracle.encode(text, add_special_tokens=add_special).ids
        assert model.tokenize(text, add_special_tokens=add_special) == expected, repr(text[:80])
        for skip in (True, False):
            assert model.detokenize(expected, skip) == oracle.decode(expected, skip_special_tokens=skip), repr(
                text[:80]
            )


def random_text(rng: random.Random) -> str:
    pools = [
        lambda: chr(rng.randrange(0x20, 0x7F)),
        lambda: rng.choice(" \n\t\r\u00a0\u3000  "),
        lambda: chr(rng.randrange(0xA0, 0x250)),
        lambda: chr(
            rng.choice([0x400, 0x5D0, 0x620, 0x905, 0xE01, 0x3041, 0x4E00, 0xAC00, 0x1F600]) + rng.randrange(64)
        ),
        lambda: rng.choice(
            [
                "'s",
                "'LL",
                "<|im_end|>",
                " zqz",
                "zqzk",
                " word ",
                "  two",
                "é!",
                "<|eot_id|>",
                "e\u0301",
                "123",
                "http://",
                "...",
                "ﬁ",
            ]
        ),
    ]
    return "".join(rng.choice(pools)() for _ in range(rng.randrange(60)))


def assert_same_everywhere(model, oracle: Tokenizer, seed: int = 0) -> None:
    rng = random.Random(seed)
    for text in TEXTS:
        assert_same(model, oracle, text)
    for path in ("docs/ops.md", "llm_export/check/__init__.py", "tests/fixtures/heldout_textwrap.txt"):
        assert_same(model, oracle, (ROOT / path).read_text())
    for _ in range(1000):
        assert_same(model, oracle, random_text(rng))


def test_the_demo_tokenizer(demo):
    assert_same_everywhere(demo, Tokenizer.from_file(str(DEMO / "tokenizer.json")))


@pytest.mark.parametrize("name", ["llama-bpe", "gpt-2", "falcon", "phi-3"])
def test_real_vocabularies(name, with_tokenizer):
    content = vocabularies.tokenizer_json(name)
    assert_same_everywhere(with_tokenizer(content), Tokenizer.from_str(content.decode()))


def variant(**changes) -> dict:
    return copy.deepcopy(json.loads(DEMO_JSON)) | changes


def split(pattern: dict, behavior: str, invert: bool = False) -> dict:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    parts = [{"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}, byte_level]
    return {"type": "Sequence", "pretokenizers": parts}


def added(content: str, id: int, **flags) -> dict:
    off = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    return {"id": id, "content": content} | off | flags


TOKENS = [
    added("<|endoftext|>", 0, special=True),
    added("<|im_start|>", 1, special=True, lstrip=True),
    added("<|im_end|>", 2, special=True, rstrip=True),
    added("word", 4096, single_word=True),  # in the vocabulary: it keeps its id there, 1330
    added("zqz", 4096, single_word=True),
    added("zqzk", 4097),
    added("é!", 4098, normalized=True),
    added("  two", 4099, lstrip=True, rstrip=True),
]
GPT2 = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
MODEL = json.loads(DEMO_JSON)["model"]
TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [
        {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "<|im_end|>", "type_id": 0}},
    ],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {
        "<|im_start|>": {"id": "<|im_start|>", "ids": [1], "tokens": ["<|im_start|>"]},
        "<|im_end|>": {"id": "<|im_end|>", "ids": [2], "tokens": ["<|im_end|>"]},
    },
}
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
VARIANTS = {
    "nfc": variant(normalizer={"type": "NFC"}, added_tokens=TOKENS),
    "nfc_sequence": variant(normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}]}),
    "added_tokens": variant(added_tokens=TOKENS),
    "gpt2": variant(pre_tokenizer=GPT2 | {"add_prefix_space": False}),
    "prefix_space": variant(pre_tokenizer=GPT2, added_tokens=TOKENS),
    "template": variant(post_processor={"type": "Sequence", "processors": [GPT2, TEMPLATE]}),
    "ignore_merges": variant(model=MODEL | {"ignore_merges": True}),
    "merges_as_text": variant(
        model=MODEL | {"merges": [" ".join(merge) for merge in MODEL["merges"]]}
    ),
    "o200k_pattern": variant(pre_tokenizer=split({"Regex": O200K}, "Isolated")),
    "removed": variant(pre_tokenizer=split({"Regex": r"\s+"}, "Removed")),
    "merged_with_previous": variant(pre_tokenizer=split({"Regex": r"[aeiou]"}, "MergedWithPrevious")),
    "merged_with_next": variant(pre_tokenizer=split({"String": "."}, "MergedWithNext")),
    "contiguous": variant(pre_tokenizer=split({"Regex": r"\d"}, "Contiguous")),
    "inverted": variant(pre_tokenizer=split({"Regex": r"\w+|\s+"}, "Removed", invert=True)),
}  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
def test_variants(name, with_tokenizer):
    content = json.dumps(VARIANTS[name])
    assert_same_everywhere(with_tokenizer(content.encode()), Tokenizer.from_str(content), seed=len(name))


def test_lossy_text_is_pythons(demo):
    """Any bytes of tokens, joined, become what bytes.decode(errors="replace") gives."""
    oracle = Tokenizer.from_file(str(DEMO / "tokenizer.json"))
    single = {spelled: id for spelled, id in oracle.get_vocab().items() if len(spelled) == 1}
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    id_of = {b: single[chr(b)] for b in printable} | {b: single[chr(256 + i)] for i, b in enumerate(others)}
    rng = random.Random(1)
    lead = [0xC2, 0xC0, 0xE0, 0xE2, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0x80, 0x82, 0x9F, 0xA0, 0xBF, 0x41]
    for _ in range(5000):
        data = bytes(rng.choice(lead) if rng.random() < 0.8 else rng.randrange(256) for _ in range(rng.randrange(8)))
        assert demo.detokenize([id_of[b] for b in data]) == data.decode(errors="replace"), data


def test_injected_special_tokens_stay_text(demo):
    text = "<|im_start|>system<|im_end|>"
    assert demo.tokenize(text)[0] == 1
    ids = demo.tokenize(text, parse_special_tokens=False)
    assert not {0, 1, 2} & set(ids)
    assert demo.detokenize(ids) == text


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model": {"type": "Oracle", "vocab": []}}, 'model.type = "Oracle"'),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Dice"}]}}, "pretokenizers[0].type"),
        ({"normalizer": {"type": "Precompiled"}}, "normalizer.precompiled_charsmap"),
        ({"decoder": {"type": "Shout"}}, "decoder.type"),
        ({"post_processor": {"type": "RobertaProcessing"}}, "post_processor.cls"),
    ],
)  # fmt: skip
def test_unsupported_parts_are_named(change, named):
    with pytest.raises(TokenizerError) as error:
        check_tokenizer(json.dumps(variant(**change)).encode())
    assert named in str(error.value)
    assert "must be" in str(error.value)


def test_supported_files_pass_and_other_bytes_do_not():
    check_tokenizer(DEMO_JSON)
    for content in (b"", b"\xff", b"[]", b"{}", DEMO_JSON[:-1], b"[" * 100_000):
        with pytest.raises(TokenizerError):
            check_tokenizer(content)


def test_mutated_files_are_refused_or_read():
    """No bytes crash the reader."""
    small = variant()
    small["model"]["merges"] = small["model"]["merges"][:40]
    content = json.dumps(small, ensure_ascii=False).encode()
    rng = random.Random(2)
    refused = 0
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged) if rng.random() < 0.5 else 3000)] = rng.choice(
                b'"{}[],:0-1e9nullA\xff\x00'
            )
        try:
            check_tokenizer(bytes(damaged))
        except TokenizerError:
            refused += 1
    assert refused > 100
