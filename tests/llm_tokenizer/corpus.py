"""Megabytes of varied text, from what every machine that runs the tests has: the same for a seed and an installation."""

from __future__ import annotations

import functools
import gettext
import importlib.util
import os
import random
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.llm_tokenizer import texts

LANGUAGE_SUFFIXES = {
    ".py",
    ".pyi",
    ".h",
    ".hpp",
    ".c",
    ".cpp",
    ".js",
    ".css",
    ".html",
    ".json",
    ".cmake",
    ".yaml",
    ".csv",
}
PROSE_SUFFIXES = {".md", ".rst", ".txt"}
# Installed wherever the tests run, with much source code and text.
PACKAGES = (
    "torch",
    "sympy",
    "networkx",
    "transformers",
    "numpy",
    "_pytest",
    "mpmath",
    "idna",
    "rich",
    "pygments",
    "hypothesis",
)
MIN_FILE_BYTES, MAX_FILE_BYTES = 1_500, 2_000_000
BATCH_BYTES = 500_000
# Words of scripts: the range of their letters, and of their signs that stand on letters.
SCRIPTS = [
    (0x61, 0x7B, None), (0xC0, 0x180, (0x300, 0x330)), (0x3B1, 0x3CA, (0x300, 0x302)), (0x410, 0x450, None),
    (0x561, 0x587, None), (0x5D0, 0x5EB, (0x5B0, 0x5BD)), (0x621, 0x64B, (0x64B, 0x653)), (0x905, 0x93A, (0x93E, 0x94E)),
    (0x985, 0x9B9, (0x9BE, 0x9CE)), (0xB85, 0xBBA, (0xBBE, 0xBCE)), (0xE01, 0xE2F, (0xE34, 0xE3B)), (0xE81, 0xEB0, (0xEB4, 0xEBA)),
    (0x10D0, 0x10F1, None), (0x1200, 0x1250, None), (0x1780, 0x17B4, (0x17B6, 0x17D4)), (0x1000, 0x102B, (0x102B, 0x103F)),
    (0x3041, 0x3097, (0x3099, 0x309B)), (0x30A1, 0x30FB, (0x3099, 0x309B)), (0x4E00, 0x9FA6, None), (0xAC00, 0xD7A4, None),
    (0x1100, 0x1200, None), (0x13A0, 0x13F6, None), (0xA500, 0xA60C, None), (0x10400, 0x10450, None), (0x20000, 0x2A6D7, None),
    (0x1E900, 0x1E944, None),
]  # fmt: skip
SPACES = [" "] * 30 + [
    "  ",
    "\n",
    "\n\n",
    "\t",
    "\u3000",
    "\u00a0",
    "\u200b",
    ", ",
    ". ",
    "; ",
    "-",
    "'",
    "\u2019",
    "/",
    "\u0964 ",
]
EMOJI_RANGES = [(0x1F300, 0x1F650), (0x1F680, 0x1F700), (0x1F900, 0x1FA00), (0x2600, 0x27C0), (0x1F1E6, 0x1F200)]
EMOJI_JOINTS = [
    "",
    "",
    " ",
    "\u200d",
    "\u200d",
    "\ufe0f",
    "\ufe0e",
    "\ufe0f\u200d",
    "\U0001f3fb",
    "\U0001f3ff",
    "\u20e3",
    "\U000e0067\U000e007f",
]


def documents(megabytes: float, seed: int = 0, for_code_points: float | None = None) -> Iterator[list[str]]:
    """Yields batches of documents, together at least so many megabytes.

    Code points come first: all of them from 50 megabytes on, from 8 on all up to U+1FFFF and a sample of the rest, else a sample.
    for_code_points: decides that instead of megabytes; 0: none
    """
    rng = random.Random(seed)
    size = 0
    thoroughness = megabytes if for_code_points is None else for_code_points
    if thoroughness > 0:
        for batch in _batches(code_points(thoroughness, rng)):
            size += _bytes(batch)
            yield batch
    while size < megabytes * 1e6:
        batch = list(_mixture(min(BATCH_BYTES, megabytes * 1e6 - size), rng))
        size += _bytes(batch)
        yield batch


def code_points(megabytes: float, rng: random.Random) -> Iterator[str]:
    """Yields texts with code points alone, and beside letters, digits and spaces."""
    step = 1 if megabytes >= 50 else 41
    tags = range(0xE0000, 0xE0200)
    codes = [
        *range(0xD800),
        *range(0xE000, 0x20000),
        *range(0x20000, 0xE0000, step),
        *tags,
        *range(0xE0200, 0x110000, step),
    ]
    if megabytes < 8:
        codes = codes[rng.randrange(23) :: 23]
    for start in range(0, len(codes), 512):
        chunk = [chr(code) for code in codes[start : start + 512]]
        letter, digit, space = rng.choice("aZ\u00e9\u0416\u4e2d"), rng.choice("07\u0663"), rng.choice("   \n\t\u00a0")
        yield space.join(chunk)
        yield "".join(f"{letter}{c}{digit}{c}{space}{c}" for c in chunk)
        if start % 4096 == 0:
            yield from chunk[:64]


def _bytes(batch: list[str]) -> int:
    return sum(len(text.encode()) for text in batch)


def _batches(found: Iterator[str]) -> Iterator[list[str]]:
    batch, size = [], 0
    for text in found:
        batch.append(text)
        size += 3 * len(text)
        if size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _mixture(num_bytes: float, rng: random.Random) -> Iterator[str]:
    kinds, weights = zip(*KINDS.items(), strict=True)
    size = 0
    while size < num_bytes:
        kind = rng.choices(kinds, weights)[0]
        end = size + 4000
        while size < end:
            text = kind(rng)
            size += len(text.encode())
            yield text


def _length(rng: random.Random) -> int:
    """Characters of a document: most are short, some long."""
    return int(2 ** rng.uniform(3, 14.5))


@functools.cache
def _files(prose: bool) -> list[Path]:
    suffixes = PROSE_SUFFIXES if prose else LANGUAGE_SUFFIXES
    installed = Path(pytest.__file__).parent.parent
    found = [path for name in PACKAGES for path in (installed / name).rglob("*") if path.suffix in suffixes]
    for folder, _, names in os.walk(Path(random.__file__).parent):
        if "site-packages" not in folder:
            found += [Path(folder, name) for name in names if Path(name).suffix in suffixes]
    if prose:
        found += [path for path in installed.glob("*.dist-info/**/*") if path.name.startswith(("METADATA", "LICENSE"))]
    return sorted(path for path in found if MIN_FILE_BYTES < path.stat().st_size < MAX_FILE_BYTES)


@functools.lru_cache(maxsize=64)
def _read(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


def _from_files(prose: bool) -> Callable[[random.Random], str]:
    def text(rng: random.Random) -> str:
        files = _files(prose)
        content = _read(rng.choice(files))
        length = _length(rng)
        begin = rng.randrange(max(1, len(content) - length // 2))
        return content[begin : begin + length]

    return text


@functools.cache
def _translations() -> list[list[str]]:
    """What a package of country names says in 160 languages, a list for each."""
    found = importlib.util.find_spec("pycountry")
    if found is None or found.origin is None:
        return [list(texts.SCRIPTS.values())]
    languages = []
    for folder in sorted(Path(found.origin).parent.glob("locales/*/LC_MESSAGES")):
        messages = []
        for path in sorted(folder.glob("*.mo")):
            with path.open("rb") as file:
                messages += [text for text in gettext.GNUTranslations(file)._catalog.values() if isinstance(text, str)]
        if messages:
            languages.append(messages)
    return languages


def translated(rng: random.Random) -> str:
    """A run of phrases of one language, now and then of two."""
    parts = []
    for _ in range(rng.choice([1, 1, 1, 2])):
        messages = rng.choice(_translations())
        begin = rng.randrange(len(messages))
        parts.append(rng.choice([", ", "\n", ". ", " "]).join(messages[begin : begin + rng.randrange(1, 120)]))
    return rng.choice(["\n\n", " - ", ""]).join(parts)


def synthetic(rng: random.Random) -> str:
    """Words of random letters of one to three scripts, with the signs that stand on them."""
    words = []
    for first, last, signs in rng.sample(SCRIPTS, rng.choice([1, 1, 2, 3])):
        letters = rng.choices(range(first, last), k=60)
        for _ in range(rng.randrange(5, 80)):
            word = [chr(c) for c in rng.choices(letters, k=rng.randrange(1, 9))]
            if signs and rng.random() < 0.5:
                word.insert(rng.randrange(len(word) + 1), chr(rng.randrange(*signs)))
            words.append("".join(word).title() if rng.random() < 0.2 else "".join(word))
            words.append(rng.choice(SPACES))
    return "".join(words)


def named(rng: random.Random) -> str:
    """Characters of one block beside their names."""
    first = rng.randrange(0x2F00) * 16 if rng.random() < 0.1 else rng.randrange(0x20, 0x3500)
    codes = [code for code in range(first, first + 60) if not 0xD800 <= code < 0xE000]
    return "\n".join(f"{chr(code)}\tU+{code:04X} {unicodedata.name(chr(code), '?').title()}" for code in codes)


def emoji(rng: random.Random) -> str:
    parts = []
    for _ in range(rng.randrange(1, 120)):
        parts.append(chr(rng.randrange(*rng.choice(EMOJI_RANGES))))
        parts.append(rng.choice(EMOJI_JOINTS))
    return "".join(parts)


def controls(rng: random.Random) -> str:
    """Runs of spaces, line ends and control characters between words."""
    parts = []
    for _ in range(rng.randrange(1, 60)):
        parts.append(rng.choice(texts.CONTROL + " \n\t\r") * rng.choice([1, 1, 1, 2, 3, 7, 40]))
        parts.append(rng.choice(["", "x", "word", "It's", "12", "!?"]))
    return "".join(parts)


def numbers(rng: random.Random) -> str:
    shapes = [lambda: str(rng.randrange(10**6)), lambda: f"{rng.uniform(-1e4, 1e4):.4f}", lambda: f"{rng.getrandbits(64):x}",
              lambda: f"{rng.random():e}", lambda: f"{rng.randrange(10**12):,}", lambda: str(rng.getrandbits(300))]  # fmt: skip
    return rng.choice([" ", ", ", "\n", "\t", ""]).join(rng.choice(shapes)() for _ in range(rng.randrange(1, 80)))


def soup(rng: random.Random) -> str:
    """Added tokens, whole and broken, with and without spaces."""
    parts = []
    for _ in range(rng.randrange(1, 100)):
        token = rng.choice(texts.SOUP)
        cut = rng.randrange(1, len(token) + 1) if rng.random() < 0.15 else len(token)
        parts.append(token[:cut])
        parts.append(rng.choice(["", "", "", " ", "  ", "\n", "a", "9", "_", "\u4e2d"]))
    return "".join(parts)


def any_characters(rng: random.Random) -> str:
    codes = rng.choices(range(0x110000 - 0x800), k=rng.randrange(1, 200))
    return "".join(chr(code if code < 0xD800 else code + 0x800) for code in codes)


KINDS: dict[Callable[[random.Random], str], float] = {
    _from_files(False): 22,
    _from_files(True): 12,
    translated: 20,
    synthetic: 10,
    named: 3,
    emoji: 6,
    controls: 6,
    numbers: 4,
    soup: 10,
    any_characters: 3,
    lambda rng: texts.random_text(rng, 120): 12,
}
