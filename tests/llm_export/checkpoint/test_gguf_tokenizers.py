"""Tokenizers from GGUF metadata: what llama.cpp and the model's own tokenizer.json make of a text."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import pytest
from tokenizers import Tokenizer

from llm_export.checkpoint.gguf.pretokenizers import PRE_TOKENIZERS
from llm_export.checkpoint.gguf.reader import open_gguf
from llm_export.checkpoint.gguf.tokenizer import end_ids, read_vocabulary, tokenizer_config, tokenizer_json
from llm_export.checkpoint.tokenizer import TokenizerFile, check_compiled_tokenizer
from llm_export.errors import FileError
from tests.llm_export.checkpoint.gguf_files import add_key
from tests.vocabularies import FOLDER
from tests.vocabularies import tokenizer_json as real_tokenizer

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
BYTES = [*"abcdefgh", "\u0120"]  # enough of the byte alphabet for these texts
LETTERS = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": [*BYTES, "ab", "\u0120a", "<|im_end|>", "<think>"],
    "tokenizer.ggml.token_type": [NORMAL] * 11 + [CONTROL, USER_DEFINED],
    "tokenizer.ggml.merges": ["a b", "\u0120 a"],
    "tokenizer.ggml.eos_token_id": 11,
}
PIECES = {
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", "\u2581", "a", "b", "ab", "\u2581ab"],
    "tokenizer.ggml.token_type": [UNKNOWN, CONTROL, CONTROL] + [NORMAL] * 5,
    "tokenizer.ggml.scores": [0.0, 0.0, 0.0, -1.0, -2.0, -3.0, -4.0, -5.0],
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
}


@pytest.fixture
def read(tmp_path):
    """Returns the vocabulary of a file with these metadata and no tensors."""

    def read(fields: dict, **changes):
        writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
        for key, value in (fields | {f"tokenizer.ggml.{name}": value for name, value in changes.items()}).items():
            if value is not None:
                add_key(writer, key, value)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        return read_vocabulary(open_gguf(tmp_path / "x.gguf").metadata, 1 << 20)

    return read


def metadata_of(original: dict, pre: str) -> dict:
    """What the converter writes of a tokenizer.json."""
    vocab, merges = original["model"]["vocab"], original["model"]["merges"]
    merges = [tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge) for merge in merges]
    added = {token["id"]: token for token in original["added_tokens"]}
    count = max(*vocab.values(), *added) + 1
    tokens, types = [f"[PAD{i}]" for i in range(count)], [UNUSED] * count
    for token, i in vocab.items():
        tokens[i], types[i] = token, BYTE if token.startswith("<0x") and len(token) == 6 else NORMAL
    for i, token in added.items():
        tokens[i], types[i] = token["content"], CONTROL if token["special"] else USER_DEFINED
    fields = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types}
    if pre:
        merges = [" ".join(merge) for merge in merges]
        return fields | {
            "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre, "tokenizer.ggml.merges": merges
        }  # fmt: skip
    ranks: dict[str, int] = {}
    for rank, merge in enumerate(merges):
        ranks.setdefault("".join(merge), rank)
    spaces = {"\u2581" * length for length in range(2, 17)}  # all of one score in sentencepiece
    scores = [-1e9 if token in spaces else -float(ranks.get(token, 0)) for token in tokens]
    return fields | {"tokenizer.ggml.model": "llama", "tokenizer.ggml.scores": scores}


@pytest.mark.parametrize(
    ("name", "pre"), [("llama-bpe", "llama-bpe"), ("gpt-2", "gpt-2"), ("falcon", "falcon"), ("phi-3", "")]
)
def test_reads_texts_as_llama_cpp_does(read, name, pre):
    vocabulary = read(metadata_of(json.loads(real_tokenizer(name)), pre))
    tokenizer = Tokenizer.from_buffer(tokenizer_json(vocabulary, "llama"))
    texts = (FOLDER / f"{name}.inp").read_text().split("\n__ggml_vocab_test__\n")
    expected = (FOLDER / f"{name}.out").read_text().splitlines()
    for text, line in zip(texts, expected, strict=False):
        assert tokenizer.encode(text, add_special_tokens=False).ids == list(map(int, line.split())), text


@pytest.mark.parametrize("pre", sorted(PRE_TOKENIZERS))
def test_the_runner_has_every_pre_tokenizer(read, pre):
    alphabet = sorted(map(chr, range(33, 127)))
    fields = LETTERS | {
        "tokenizer.ggml.tokens": [*alphabet, "\u0120", "ab", "\u0120a"],
        "tokenizer.ggml.token_type": [NORMAL] * (len(alphabet) + 3), "tokenizer.ggml.eos_token_id": 1,
    }  # fmt: skip
    content = tokenizer_json(read(fields, pre=pre), "llama")
    check_compiled_tokenizer(TokenizerFile(Path("x.gguf"), "tokenizer.json", content))


def test_added_tokens_are_whole_and_special_ones_say_so(read):
    tokenizer = Tokenizer.from_buffer(tokenizer_json(read(LETTERS), "llama"))
    ids = tokenizer.encode("ab<think> ab<|im_end|>").ids
    assert ids == [9, 12, 8, 9, 11]
    assert tokenizer.decode(ids) == "ab<think> ab"
    assert end_ids(read(LETTERS)) == [11]


def test_pieces_have_spaces_and_a_beginning(read):
    tokenizer = Tokenizer.from_buffer(tokenizer_json(read(PIECES), "llama"))
    assert tokenizer.encode("ab ab").ids == [1, 7, 7]
    assert tokenizer.decode([1, 7, 7]) == "ab ab"
    bare = Tokenizer.from_buffer(tokenizer_json(read(PIECES, add_bos_token=False, add_space_prefix=False), "llama"))
    assert bare.encode("ab ab").ids == [6, 7]
    ended = Tokenizer.from_buffer(tokenizer_json(read(PIECES, add_eos_token=True), "llama"))
    assert ended.encode("ab").ids == [1, 7, 2]
    assert tokenizer_config(read(PIECES)) == {"bos_token": "<s>", "eos_token": "</s>"}


def test_what_ends_a_reply(read):
    tokens = ["a", "<|im_end|>", "<|endoftext|>", "<|end|>", "<|return|>", "<|call|>"]
    fields = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.eos_token_id": 2}
    assert end_ids(read(fields, token_type=[NORMAL] + [CONTROL] * 5)) == [2, 1, 4, 5]
    assert end_ids(read(fields, token_type=[NORMAL] * 6)) == [2]
    assert end_ids(read(fields, eot_token_id=1, token_type=[NORMAL] * 6)) == [2, 1]


@pytest.mark.parametrize(
    ("fields", "changes", "message"),
    [
        (LETTERS, {"model": "rwkv"}, "tokenizer.ggml.model = 'rwkv': must be one of gpt2, llama. .*--tokenizer FOLDER"),
        (LETTERS, {"model": None}, "tokenizer.ggml.model = '': must be one of gpt2, llama"),
        (LETTERS, {"model": [1]}, "tokenizer.ggml.model = an array of 1: must be a string"),
        (LETTERS, {"pre": "new"}, "tokenizer.ggml.pre = 'new', which says how text is cut.*bloom.*--tokenizer FOLDER"),
        (LETTERS, {"pre": None}, "tokenizer.ggml.pre = ''"),
        (LETTERS, {"tokens": None}, "tokenizer.ggml.tokens is missing"),
        (LETTERS, {"tokens": [1, 2]}, "tokenizer.ggml.tokens = an array of int32: must be an array of strings"),
        (LETTERS, {"tokens": ["a", "b", "a"]}, r"tokenizer.ggml.tokens\[2\] = 'a': is token 0 too"),
        (LETTERS, {"token_type": [1]}, "tokenizer.ggml.token_type = an array of 1: must have 13, one for each token"),
        (LETTERS, {"merges": None}, "tokenizer.ggml.merges is missing"),
        (LETTERS, {"merges": ["ab"]}, r"tokenizer.ggml.merges\[0\] = 'ab': must be two tokens with a space between"),
        (LETTERS, {"merges": ["a b", "a zz"]}, r"tokenizer.ggml.merges\[1\] = 'a zz': must be two tokens"),
        (LETTERS, {"add_bos_token": True}, "tokenizer.ggml.bos_token_id is missing: must be there, as"),
        (LETTERS, {"add_bos_token": "yes"}, "tokenizer.ggml.add_bos_token = 'yes': must be a bool"),
        (LETTERS, {"eos_token_id": 13}, "tokenizer.ggml.eos_token_id = 13: must be a whole number from 0 to 12"),
        (PIECES, {"scores": None}, "tokenizer.ggml.scores is missing"),
        (PIECES, {"tokens": [*PIECES["tokenizer.ggml.tokens"][:7], "a" * 257]}, r"tokens\[7\] has 257 characters"),
    ],
)
def test_refuses_what_is_described_in_part(read, fields, changes, message):
    with pytest.raises(FileError, match=f"x.gguf: .*{message}"):
        vocabulary = read(fields, **changes)
        tokenizer_json(vocabulary, "llama")
        end_ids(vocabulary)
