"""Throughput of llm_tokenizer beside `tokenizers` and `tiktoken`.

The same vocabulary and text, one thread, in turns; seconds are those of the process, so that what else the machine
does counts little.

    python -m benchmarks.tokenizer ../shared/data/tokenizers/llama-bpe.json.gz [--rounds 7] [--megabytes 1]
"""

from __future__ import annotations

import argparse
import gettext
import gzip
import json
import os
import pydoc
import pydoc_data.topics
import statistics
import time
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import tiktoken  # noqa: E402
import tokenizers  # noqa: E402

import llm_tokenizer  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
CHINESE = (
    "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。"
    "我们昨天去了图书馆,借了三本关于历史的书;今天下午还要去看一场电影。天气预报说,明天会下雨,气温降到12度。"
)
WORST = {
    "1 MB of one letter": "a" * 1_000_000,
    "1 MB of spaces": " " * 1_000_000,
    "1 MB of emoji": "\U0001f600" * 250_000,
}


def is_chinese(line: str) -> bool:
    return sum("\u4e00" <= c <= "\u9fff" for c in line) > len(line) / 2


def chinese_text(locales: Path) -> str:
    """Returns what the programs of this machine say in Chinese, each line once; else one paragraph."""
    lines = {}
    for path in sorted(locales.glob("zh_*/LC_MESSAGES/*.mo")):
        with path.open("rb") as file:
            messages = gettext.GNUTranslations(file)._catalog.values()
        lines.update(dict.fromkeys(line for text in messages for line in text.split("\n") if is_chinese(line)))
    return "\n".join(lines) or CHINESE


def samples(megabytes: float, locales: Path) -> dict[str, str]:
    """Returns text of each kind, English and code from Python's library; what is too short is repeated."""
    english = "\n".join(pydoc_data.topics.topics.values())
    code = "\n".join(path.read_text() for path in sorted(Path(pydoc.__file__).parent.glob("*.py")))
    chinese = chinese_text(locales)
    lines = zip(english.splitlines(), code.splitlines(), chinese.splitlines() * 99, strict=False)
    mixed = "\n".join("\n".join(three) for three in lines)
    size = int(megabytes * 1e6)
    found = {}
    for name, text in {"english": english, "code": code, "chinese": chinese, "mixed": mixed}.items():
        repeated = text * (size // len(text.encode()) + 1)
        if len(text.encode()) < size:
            print(f"{name}: {len(text.encode()) / 1e6:.2f} MB, repeated")
        found[name] = repeated.encode()[:size].decode(errors="ignore")
    return found


def byte_level_ranks(description: dict) -> tuple[dict[bytes, int], str] | None:
    """Returns the vocabulary and the pattern for tiktoken, if the tokenizer is one that it can imitate."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    byte_of = {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}
    special = {token["content"] for token in description["added_tokens"]}
    vocabulary = sorted((i, t) for t, i in description["model"]["vocab"].items() if t not in special)
    if any(c not in byte_of for _, token in vocabulary for c in token):
        return None
    ranks = {bytes(byte_of[c] for c in token): id for id, token in vocabulary}
    if len([b for b in ranks if len(b) == 1]) < 256:
        return None
    text = json.dumps(description["pre_tokenizer"])
    if '"Regex"' in text:
        return ranks, description["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
    return ranks, r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"


def measure(encoders: dict, text: str, rounds: int) -> dict[str, float]:
    """Returns the median megabytes a second of each encoder, which take turns."""
    chunks = [text[i : i + 20_000] for i in range(0, len(text), 20_000)]
    seconds = {name: [] for name in encoders}
    for _ in range(rounds + 1):
        for name, encode in encoders.items():
            start = time.process_time()
            for chunk in chunks:
                encode(chunk)
            seconds[name].append(time.process_time() - start)
    size = len(text.encode()) / 1e6
    return {name: size / statistics.median(found[1:]) for name, found in seconds.items()}


def report(path: Path, texts: dict[str, str], rounds: int) -> None:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    compiled = llm_tokenizer.compile_tokenizer(content, path.name)
    ours = llm_tokenizer.Tokenizer(compiled)
    theirs = tokenizers.Tokenizer.from_str(content.decode())
    encoders = {
        "mote": ours.encode_ids,
        "tokenizers": lambda text: theirs.encode_batch_fast([text])[0].ids,
    }
    for_tiktoken = byte_level_ranks(json.loads(content))
    if for_tiktoken is not None:
        encoding = tiktoken.Encoding("t", pat_str=for_tiktoken[1], mergeable_ranks=for_tiktoken[0], special_tokens={})
        encoders["tiktoken"] = encoding.encode_ordinary
    print(f"{path.name}: median MB/s of {rounds} rounds, texts of 20,000 characters")
    for kind, text in texts.items():
        found = measure(encoders, text, rounds)
        ratios = ", ".join(f"{found['mote'] / speed:.1f} x {name}" for name, speed in found.items() if name != "mote")
        speeds = "  ".join(f"{name} {speed:6.2f}" for name, speed in found.items())
        print(f"  {kind:8} {speeds}   {ratios}", flush=True)
    for name, text in WORST.items():
        start = time.process_time()
        ours.encode_ids(text)
        print(f"  {name}: {time.process_time() - start:.2f} s")
    start = time.process_time()
    for _ in range(20):
        llm_tokenizer.Tokenizer(compiled)
    milliseconds = (time.process_time() - start) / 20 * 1e3
    print(f"  opened in {milliseconds:.2f} ms, copying {len(compiled) / 1e6:.1f} MB included", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="tokenizer.json, or that gzipped")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--megabytes", type=float, default=1.0)
    parser.add_argument("--locales", type=Path, default=Path("/usr/share/locale"), help="folder with zh_CN/LC_MESSAGES")
    arguments = parser.parse_args()
    texts = samples(arguments.megabytes, arguments.locales)
    for path in arguments.files:
        report(path, texts, arguments.rounds)


if __name__ == "__main__":
    main()
