"""How text is cut before byte-level merges: what each `tokenizer.ggml.pre` stands for.

Source: llama.cpp src/llama-vocab.cpp, and the tokenizer.json of the models that a name comes from
"""

from __future__ import annotations

from dataclasses import dataclass, field

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK3 = (
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
)
BLOOM = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"


def _split(pattern: str) -> dict:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _byte_level(use_regex: bool) -> dict:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


@dataclass(frozen=True)
class PreTokenizer:
    """stages: as in tokenizer.json; ignore_merges: a piece that is a token stays whole; normalizer: before all"""

    stages: list[dict]
    ignore_merges: bool = False
    add_bos: bool = False  # where the file does not say
    normalizer: dict | None = field(default=None)


def _splits(*patterns: str, **options) -> PreTokenizer:
    return PreTokenizer([*map(_split, patterns), _byte_level(False)], **options)


NFC = {"type": "NFC"}
GPT2 = PreTokenizer([_byte_level(True)])
DIGITS = PreTokenizer([{"type": "Digits", "individual_digits": True}, _byte_level(True)])
FALCON = PreTokenizer(
    [
        {"type": "Punctuation", "behavior": "Contiguous"}, _byte_level(True),
        {"type": "Digits", "individual_digits": False}, _split("[0-9][0-9][0-9]"),
    ]
)  # fmt: skip
LLAMA = _splits(LLAMA3, ignore_merges=True, add_bos=True)

SEED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"
BAILING = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"

PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    name: pre
    for names, pre in (
        ("llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2", LLAMA),
        ("gpt-2 phi-2 jais trillion granite-docling gigachat a.x-4.0 mellum exaone4", GPT2),
        ("olmo mpt", PreTokenizer(GPT2.stages, normalizer=NFC)),
        ("starcoder refact smollm codeshell exaone minerva-7b mellum2", DIGITS),
        ("command-r", PreTokenizer(DIGITS.stages, normalizer=NFC)),
        ("dbrx smaug-bpe chatglm-bpe glm4", _splits(LLAMA3)),
        ("gpt-4o llama4 kanana2 talkie minimax-m2", _splits(GPT4O)),
        ("qwen2", _splits(QWEN2, normalizer=NFC)),
        ("qwen35", _splits(QWEN35, normalizer=NFC)),
        ("deepseek-r1-qwen megrez kormo f2llmv2 stablelm2 hunyuan solar-open grok-2", _splits(QWEN2)),
        ("seed-coder", _splits(SEED)),
        ("bailingmoe bailingmoe2 llada-moe", _splits(BAILING)),
        ("deepseek-v3 hunyuan-dense joyai-llm", _splits(*DEEPSEEK3)),
        ("tekken", _splits(TEKKEN, ignore_merges=True, add_bos=True)),
        ("falcon", FALCON),
        ("bloom gpt3-finnish poro-chat", _splits(BLOOM)),
        ("viking", _splits(BLOOM, r"\p{N}")),
    )
    for name in names.split()
}
