"""Tokenizers against `tokenizers` on much text, and every string of up to three bytes against Python's replacement."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator

from scripts.soak.figures import ROOT, Figure, Size
from tests import vocabularies

LEADING = [*range(256), *([0xC2, 0xE0, 0xE2, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF] * 40)]
BATCH = 1 << 16


def tokenizers() -> dict[str, str]:
    """tokenizer.json by name: the demo model's, and those of real models that are here."""
    found = {name: vocabularies.tokenizer_json(name).decode() for name in vocabularies.names()}
    return {"demo": (ROOT / "examples" / "demo" / "tokenizer.json").read_text()} | found


def same_ids(size: Size) -> list[Figure]:
    """R6: ids, places and text of both directions; all code points at 50 MB and more, else of a sample."""
    from tests.llm_tokenizer import corpus, oracle

    megabytes = 50 * size.share
    figures = []
    for name, content in tokenizers().items():
        ours, theirs = oracle.both(content)
        start, texts, wrong = time.monotonic(), 0, ""
        for number, batch in enumerate(corpus.documents(megabytes, seed=random.randrange(2**31))):
            texts += len(batch)
            try:
                oracle.assert_same_batch(ours, theirs, batch, add_special=number % 2 == 0, skip_special=number % 4 < 2)
            except AssertionError as difference:
                wrong = str(difference)[:80]
                break
        found = f"{megabytes:g} MB in {texts:,} texts, no difference ({time.monotonic() - start:.0f} s)"
        figures.append(Figure("R6", f"tokenizer {name}", wrong or found, not wrong))
    return figures


def ill_formed_text(size: Size) -> list[Figure]:
    """R7: bytes that are not UTF-8 read as `bytes.decode(errors="replace")`, whole and as a stream of tokens."""
    from tests.llm_tokenizer import oracle

    ours, _ = oracle.both(tokenizers()["demo"])
    figures = []
    for what, strings in (("all strings of 1 to 3 bytes", _every(size)), ("random strings", _random(size))):
        total, wrong = 0, ""
        for batch in strings:
            encoded = [ours._core.encode_bytes(data, False, False, 0)[0] for data in batch]
            decoded = ours.decode_batch(encoded, skip_special_tokens=False)
            for data, text in zip(batch, decoded, strict=True):
                if text != data.decode(errors="replace"):
                    wrong = wrong or f"{data!r} is read as {text!r}"
            total += len(batch)
        figures.append(Figure("R7", what, wrong or f"{total:,}, no difference from Python", not wrong))
    return figures


def _every(size: Size) -> Iterator[list[bytes]]:
    step = round(1 / min(size.share, 1))
    yield [bytes([a]) for a in range(256)] + [bytes([a, b]) for a in range(256) for b in range(256)]
    for first in range(0, 256, step):
        yield [bytes([first, a, b]) for a in range(256) for b in range(256)]


def _random(size: Size) -> Iterator[list[bytes]]:
    rng = random.Random(sys.maxsize)
    left = size.count(1_000_000)
    while left > 0:
        count = min(left, BATCH)
        yield [bytes(rng.choices(LEADING, k=rng.randrange(1, 12))) for _ in range(count)]
        left -= count


SUBJECTS = {"R6": same_ids, "R7": ill_formed_text}
