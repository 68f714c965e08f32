"""The tokenizer that a GGUF file's metadata describes, as a tokenizer.json."""

from __future__ import annotations

import json
from dataclasses import dataclass

from llm_export.checkpoint.gguf.fields import Metadata
from llm_export.checkpoint.gguf.pretokenizers import PRE_TOKENIZERS
from llm_export.errors import FileError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
MODELS = ("gpt2", "llama")
SPACE = "\u2581"
MAX_DERIVED_LENGTH = 256  # characters of a token whose merges are derived, which takes the square of that
MAX_DERIVED_CHARACTERS = 1 << 24  # of all of them; real vocabularies have 2 million at most
HINT = (
    "Give the model's own tokenizer with --tokenizer FOLDER, or export with --no-tokenizer for a file that takes token "
    "ids only"
)
# Tokens that end a reply, whatever the metadata call the end. Source: llama.cpp src/llama-vocab.cpp, special_eog_ids
ENDS = (
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|eom_id|>", "<EOT>", "[EOT]",
    "<|end_of_text|>", "<end_of_utterance>", "<|return|>", "<|call|>", "<|END_OF_TURN_TOKEN|>",
)  # fmt: skip
NOT_ENDS_BESIDE = ("<|end|>", {"<|return|>", "<|call|>"})  # these delimit messages of one reply
SPECIAL = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}


@dataclass(frozen=True)
class Vocabulary:
    """What metadata say of tokens, checked. types, scores: one for each token"""

    metadata: Metadata
    tokens: list[str]
    types: list[int]
    scores: list[float]

    def token(self, name: str) -> str | None:
        """Returns the token whose id has this name; None where there is none."""
        key = f"tokenizer.ggml.{name}_token_id"
        if key not in self.metadata:
            return None
        return self.tokens[self.metadata.integer(key, high=len(self.tokens) - 1)]


def read_vocabulary(metadata: Metadata, vocab_size: int) -> Vocabulary:
    """vocab_size: rows of the embedding. Errors: FileError naming key and value"""
    key = "tokenizer.ggml.tokens"
    array = metadata.array(key, strings=True)
    if array is None:
        raise FileError(f"{metadata.path}: {key} is missing: the file has no tokenizer. {HINT}")
    if not 0 < array.count <= vocab_size:
        raise FileError(f"{metadata.path}: {key} = an array of {array.count}: must have 1 to {vocab_size}, the rows of "
                        "the embedding")  # fmt: skip
    tokens = array.strings()
    seen: dict[str, int] = {}
    for i, token in enumerate(tokens):
        if seen.setdefault(token, i) != i:
            raise FileError(f"{metadata.path}: {key}[{i}] = {token[:40]!r}: is token {seen[token]} too: tokens must "
                            "differ")  # fmt: skip
    types = _numbers(metadata, "tokenizer.ggml.token_type", len(tokens), NORMAL)
    return Vocabulary(metadata, tokens, types, _numbers(metadata, "tokenizer.ggml.scores", len(tokens), 0.0))


def _numbers(metadata: Metadata, key: str, count: int, default) -> list:
    array = metadata.array(key, strings=False)
    if array is None:
        return [default] * count
    if array.count != count:
        raise FileError(f"{metadata.path}: {key} = an array of {array.count}: must have {count}, one for each token")
    return array.numbers().tolist()


def tokenizer_json(vocabulary: Vocabulary, architecture: str) -> bytes:
    """Returns the tokenizer in the form of Hugging Face's tokenizers.

    Errors: FileError that says what is not described, or not known
    """
    metadata = vocabulary.metadata
    kind = metadata.text("tokenizer.ggml.model", "")
    if kind not in MODELS:
        raise FileError(f"{metadata.path}: tokenizer.ggml.model = '{kind}': must be one of {', '.join(MODELS)}. {HINT}")
    parts = _byte_level(vocabulary) if kind == "gpt2" else _sentencepiece(vocabulary, architecture)
    added = [
        {"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": vocabulary.types[i] != USER_DEFINED}
        for i, token in enumerate(parts.pop("tokens"))
        if token and vocabulary.types[i] in (UNKNOWN, CONTROL, USER_DEFINED)
    ]  # fmt: skip
    add_bos = parts.pop("add_bos")
    return json.dumps(
        {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "post_processor": _ends(vocabulary, add_bos), **parts,
        },
        ensure_ascii=False,
    ).encode()  # fmt: skip


def tokenizer_config(vocabulary: Vocabulary) -> dict:
    """Returns the special tokens, as tokenizer_config.json has them."""
    return {field: token for field, name in SPECIAL.items() if (token := vocabulary.token(name)) is not None}


def end_ids(vocabulary: Vocabulary) -> list[int]:
    """Returns the ids that end a reply, the one that the metadata call so first."""
    metadata = vocabulary.metadata
    keys = [f"tokenizer.ggml.{name}_token_id" for name in ("eos", "eot", "eom")]
    ids = [metadata.integer(key, high=len(vocabulary.tokens) - 1) for key in keys if key in metadata]
    control = {token: i for i, token in enumerate(vocabulary.tokens) if vocabulary.types[i] == CONTROL}
    ambiguous, beside = NOT_ENDS_BESIDE
    if beside <= control.keys():
        control.pop(ambiguous, None)
    return list(dict.fromkeys([*ids, *(control[token] for token in ENDS if token in control)]))


def _byte_level(vocabulary: Vocabulary) -> dict:
    metadata = vocabulary.metadata
    name = metadata.text("tokenizer.ggml.pre", "")
    if name not in PRE_TOKENIZERS:
        raise FileError(f"{metadata.path}: tokenizer.ggml.pre = '{name}', which says how text is cut into words: must "
                        f"be one of {', '.join(sorted(PRE_TOKENIZERS))}. {HINT}")  # fmt: skip
    pre = PRE_TOKENIZERS[name]
    merges = metadata.array("tokenizer.ggml.merges", strings=True)
    if merges is None:
        raise FileError(f"{metadata.path}: tokenizer.ggml.merges is missing: must be there beside "
                        f"tokenizer.ggml.model = gpt2. {HINT}")  # fmt: skip
    ids = {token: i for i, token in enumerate(vocabulary.tokens)}
    stages = pre.stages[0] if len(pre.stages) == 1 else {"type": "Sequence", "pretokenizers": pre.stages}
    return {
        "tokens": vocabulary.tokens,
        "add_bos": pre.add_bos,
        "normalizer": pre.normalizer,
        "pre_tokenizer": stages,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": _bpe(ids, _stated_merges(metadata, merges.strings(), ids), ignore_merges=pre.ignore_merges),
    }


def _stated_merges(metadata: Metadata, merges: list[str], ids: dict[str, int]) -> list[list[str]]:
    pairs = []
    for i, merge in enumerate(merges):
        # The first character may be a space where a token begins with one.
        left, _, right = merge[:1], "", merge[1:]
        at = right.find(" ")
        left, right = left + right[:at], right[at + 1 :]
        if at < 0 or left not in ids or right not in ids or left + right not in ids:
            raise FileError(f"{metadata.path}: tokenizer.ggml.merges[{i}] = {merge[:80]!r}: must be two tokens with a "
                            "space between, which together are a token too")  # fmt: skip
        pairs.append([left, right])
    return pairs


def _bpe(ids: dict[str, int], merges: list, **options) -> dict:
    return {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
        "vocab": ids, "merges": merges,
    } | options  # fmt: skip


def _sentencepiece(vocabulary: Vocabulary, architecture: str) -> dict:
    """BPE of sentencepiece: spaces are a letter of their own, merges follow from scores.

    Source: llama.cpp src/llama-vocab.cpp llm_tokenizer_spm; transformers convert_slow_tokenizer.py LlamaConverter
    """
    metadata = vocabulary.metadata
    is_gemma = architecture.startswith("gemma")
    tokens = [SPACE * len(token) if token and not token.strip(" ") else token for token in vocabulary.tokens]
    ids = {token: i for i, token in enumerate(tokens)}
    # Gemma's merges are in the order of its tokens, which its scores do not always follow.
    scores = [-float(i) for i in range(len(tokens))] if is_gemma else vocabulary.scores
    if not is_gemma and "tokenizer.ggml.scores" not in metadata:
        raise FileError(f"{metadata.path}: tokenizer.ggml.scores is missing: must be there beside "
                        f"tokenizer.ggml.model = llama. {HINT}")  # fmt: skip
    prefix = metadata.flag("tokenizer.ggml.add_space_prefix", True)
    to_letter = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    normalizers = [{"type": "Prepend", "prepend": SPACE}, to_letter] if prefix else [to_letter]
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else []
    to_space = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
    unknown = next((tokens[i] for i, kind in enumerate(vocabulary.types) if kind == UNKNOWN), None)
    return {
        "tokens": tokens,
        "add_bos": "tokenizer.ggml.bos_token_id" in metadata,
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": [to_space, {"type": "ByteFallback"}, {"type": "Fuse"}, *strip]},
        "model": _bpe(
            ids, _derived_merges(vocabulary, tokens, ids, scores), unk_token=unknown, fuse_unk=True,
            byte_fallback=BYTE in vocabulary.types,
        ),
    }  # fmt: skip


def _derived_merges(vocabulary: Vocabulary, tokens: list[str], ids: dict[str, int], scores: list[float]) -> list:
    """Returns each way to put a token together from two, the best token first."""
    found = []
    path = vocabulary.metadata.path
    total = sum(len(token) for token in tokens if len(token) <= MAX_DERIVED_LENGTH)
    if total > MAX_DERIVED_CHARACTERS:
        raise FileError(f"{path}: tokenizer.ggml.tokens have {total} characters: must have at most "
                        f"{MAX_DERIVED_CHARACTERS}")  # fmt: skip
    for i, token in enumerate(tokens):
        if vocabulary.types[i] not in (NORMAL, USER_DEFINED) or len(token) < 2:
            continue
        if len(token) > MAX_DERIVED_LENGTH:
            if vocabulary.types[i] == USER_DEFINED:
                continue  # found whole in text
            raise FileError(f"{path}: tokenizer.ggml.tokens[{i}] has {len(token)} characters: must have at most "
                            f"{MAX_DERIVED_LENGTH}")  # fmt: skip
        for at in range(1, len(token)):
            left, right = ids.get(token[:at]), ids.get(token[at:])
            if left is not None and right is not None:
                found.append((-scores[i], -at, left, right))
    found.sort(key=lambda entry: entry[:2])  # of tokens with one score, the longest left part first
    return [[tokens[left], tokens[right]] for *_, left, right in found]


def _ends(vocabulary: Vocabulary, add_bos: bool) -> dict | None:
    """Returns what puts the tokens of beginning and end around a text."""
    metadata = vocabulary.metadata
    template = [{"Sequence": {"id": "A", "type_id": 0}}]
    special = {}
    for name, default, place in (("bos", add_bos, 0), ("eos", False, 1)):
        if not metadata.flag(f"tokenizer.ggml.add_{name}_token", default):
            continue
        token = vocabulary.token(name)
        if token is None:
            if default:
                continue
            raise FileError(f"{metadata.path}: tokenizer.ggml.{name}_token_id is missing: must be there, as "
                            f"tokenizer.ggml.add_{name}_token is true")  # fmt: skip
        template.insert(place * len(template), {"SpecialToken": {"id": token, "type_id": 0}})
        ids = [metadata.integer(f"tokenizer.ggml.{name}_token_id")]
        special[token] = {"id": token, "ids": ids, "tokens": [token]}
    if not special:
        return None
    pair = [*template, {"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": template, "pair": pair, "special_tokens": special}
