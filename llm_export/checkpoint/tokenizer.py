"""The tokenizer of a checkpoint: compiled for the device, and checked against the library that it comes from."""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass
from pathlib import Path

import llm_tokenizer
from llm_export.checkpoint.files import read_bytes
from llm_export.errors import FileError

# Texts on which tokenizers differ: scripts, code, spaces, combining marks, characters that few vocabularies have.
SAMPLES = (
    "",
    " ",
    "Hello, world! It's 3 o'clock; we'll go. I'D SAY SO.",
    "  leading and trailing  \n\n\n\ttabs\r\n  ",
    "def f(x):\n    return x ** 2  # comment\n\n\nclass A:\n        pass\n",
    "123456789 1,234.5 \u00bd \u0663\u0664 \u2167 camelCaseHTML http://a.b//c",
    "Gr\u00fc\u00dfe, \u00e7a va? e\u0301 \u212b \ufb01ne",
    "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3002\u4e2d\u6587\u5b57\u7b26 \ud55c\uad6d\uc5b4",
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u05e2\u05d1\u05e8\u05d9\u05ea",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u0e44\u0e17\u0e22",
    "\U0001f600\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \u2581 \u00a0\u3000\u200b\ufeff \x01\x7f \ufffd",
)
NUM_RANDOM_TEXTS = 300


@dataclass(frozen=True)
class TokenizerFile:
    """path: what messages name   name: what a file of this kind is called   content: None: what `path` holds"""

    path: Path
    name: str
    content: bytes | None = None

    @classmethod
    def at(cls, path: Path) -> TokenizerFile:
        return cls(path, path.name)

    def read(self) -> bytes:
        """Errors: FileError"""
        return read_bytes(self.path) if self.content is None else self.content


class _Original:
    """A tokenizer: encode(text) -> ids, added special tokens included; decode(ids) -> text without special tokens."""

    def __init__(self, encode, decode):
        self.encode = encode
        self.decode = decode


def original_tokenizer(file: TokenizerFile) -> _Original:
    """Opens a tokenizer file with the library that it comes from, where that is installed; else with llm_tokenizer.

    Errors: FileError if the library refuses it
    """
    if file.name == "tokenizer.json":
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_buffer(file.read())
        except Exception as error:  # tokenizers raises bare Exception
            raise FileError(f"{file.path}: not a tokenizer that the tokenizers library reads: {error}") from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return _Original(lambda text: tokenizer.encode(text).ids, tokenizer.decode)
    ours = llm_tokenizer.Tokenizer(compile_tokenizer(file))
    try:
        import sentencepiece
    except ImportError:
        sentencepiece = None
    if sentencepiece is not None and file.name.endswith(".model"):
        try:
            processor = sentencepiece.SentencePieceProcessor(model_proto=file.read())
        except Exception:  # a tiktoken vocabulary has this name too
            return _Original(ours.encode_ids, ours.decode)
        return _Original(processor.encode, processor.decode)
    return _Original(ours.encode_ids, ours.decode)


def compile_tokenizer(file: TokenizerFile) -> bytes:
    """Returns a tokenizer file in the form that a .mote file holds. Errors: FileError naming the field and its value"""
    try:
        return _compile(file.read(), file.name)
    except llm_tokenizer.TokenizerError as error:
        raise FileError(f"{file.path}: {error}") from error


@functools.lru_cache(maxsize=2)
def _compile(content: bytes, name: str) -> bytes:
    return llm_tokenizer.compile_tokenizer(content, name)


def check_compiled_tokenizer(file: TokenizerFile) -> None:
    """Compares the compiled tokenizer with the original on samples and on random text from its own vocabulary.

    Errors: FileError showing the first text that they read differently
    """
    compiled = llm_tokenizer.Tokenizer(compile_tokenizer(file))
    original = original_tokenizer(file)
    rng = random.Random(0)
    random_ids = ([rng.randrange(compiled.num_ids) for _ in range(24)] for _ in range(NUM_RANDOM_TEXTS))
    for text in (*SAMPLES, *(compiled.decode(ids) for ids in random_ids)):
        expected = list(original.encode(text))
        found = compiled.encode_ids(text)
        if found != expected:
            raise FileError(f"{file.path}: compiled it reads {text!r} as {found[:16]}, not as {expected[:16]}")
        if compiled.decode(expected) != original.decode(expected):
            raise FileError(f"{file.path}: compiled it writes {expected[:16]} as {compiled.decode(expected)!r}")
