"""Tokenizers that are trained for the tests, one for each component and each pattern that models use."""

from __future__ import annotations

import functools
import json

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from tests.llm_tokenizer import texts

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
TRIMMING = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}


def split(pattern: str, behavior: str = "Isolated", invert: bool = False, kind: str = "Regex") -> dict:
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(name: str, *parts: dict) -> dict:
    return {"type": "Sequence", name: list(parts)}


CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS = {
    "gpt2": rf"{CONTRACTIONS}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|\s+(?!\S)|\s+",
    "llama3": rf"(?i:{CONTRACTIONS})|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*{SPACES}",
    "qwen2": rf"(?i:{CONTRACTIONS})|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*{SPACES}",
    "qwen35": rf"(?i:{CONTRACTIONS})|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*{SPACES}",
    "o200k": rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+(?i:{CONTRACTIONS})?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*(?i:{CONTRACTIONS})?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*{SPACES}",
    "tekken": rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*{SPACES}",
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "generic": r"\p{Lu}\p{Ll}*|\d+|\w+|\s+|[^\w\s]",
}  # fmt: skip
DEEPSEEK_WORDS = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def deepseek(words: str = DEEPSEEK_WORDS) -> dict:
    return sequence("pretokenizers", split(r"\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"), split(words), BYTE_LEVEL)


FALCON = sequence(
    "pretokenizers",
    {"type": "Punctuation", "behavior": "Contiguous"},
    {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    {"type": "Digits", "individual_digits": False},
    split("[0-9][0-9][0-9]"),
)
COMMAND_R = sequence(
    "pretokenizers", {"type": "Digits", "individual_digits": True}, TRIMMING | {"add_prefix_space": False}
)


def added(content: str, **flags: bool) -> dict:
    off = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    return {"content": content} | off | flags


ADDED = [
    added("<s>", special=True),
    added("</s>", special=True, rstrip=True),
    added("<|im_start|>", special=True, lstrip=True),
    added("<|im_end|>", special=True, lstrip=True, rstrip=True),
    added("zqz", single_word=True),
    added("zqzk"),
    added("é!", normalized=True),
    added("Word", normalized=True, single_word=True),
    added("  two", lstrip=True, rstrip=True),
]


def with_added(description: dict, tokens: list[dict] = ADDED) -> dict:
    """Adds tokens behind the vocabulary."""
    size = len(description["model"]["vocab"])
    numbered = [{"id": size + i} | token for i, token in enumerate(tokens)]
    return description | {"added_tokens": numbered}


def described(tokenizer: Tokenizer) -> dict:
    return json.loads(tokenizer.to_str())


def corpus() -> list[str]:
    return [*(text[:20000] for text in texts.real_text()[:6]), *texts.SCRIPTS.values(), texts.EMOJI, texts.CODE]


@functools.cache
def byte_level(pattern: str = "llama3") -> str:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=1000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.decoder = decoders.ByteLevel()
    description = described(tokenizer)
    description["pre_tokenizer"] = sequence("pretokenizers", split(PATTERNS[pattern]), BYTE_LEVEL)
    return json.dumps(with_added(description))


@functools.cache
def bpe(**options) -> str:
    """A BPE over characters with visible spaces; options are those of models.BPE."""
    bytes_ = [f"<0x{b:02X}>" for b in range(256)] if options.get("byte_fallback") else []
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    affixes = {name: options[name] for name in ("continuing_subword_prefix", "end_of_word_suffix") if name in options}
    special = ["<unk>", *bytes_]
    trainer = trainers.BpeTrainer(
        vocab_size=1000, special_tokens=special, show_progress=False, limit_alphabet=300, **affixes
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(corpus(), trainer)
    description = described(tokenizer)
    description["added_tokens"] = []
    description["normalizer"] = None
    description["pre_tokenizer"] = {
        "type": "Metaspace",
        "replacement": "\u2581",
        "prepend_scheme": "always",
        "split": True,
    }
    description["decoder"] = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    description["model"] |= options
    return json.dumps(description)


@functools.cache
def unigram(byte_fallback: bool = False) -> str:
    bytes_ = [f"<0x{b:02X}>" for b in range(256)] if byte_fallback else []
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=800, special_tokens=["<unk>", *bytes_], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    description = described(tokenizer)
    description["added_tokens"] = []
    description["model"]["byte_fallback"] = byte_fallback
    return json.dumps(description)


@functools.cache
def wordpiece() -> str:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(
        vocab_size=1000, special_tokens=special, show_progress=False, limit_alphabet=300
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.decoder = decoders.WordPiece()
    return json.dumps(described(tokenizer))


@functools.cache
def wordlevel() -> str:
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(vocab_size=800, special_tokens=["[UNK]"], show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    return json.dumps(described(tokenizer))
