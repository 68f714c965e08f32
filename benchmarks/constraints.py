"""What a mask costs a token: `python -m benchmarks.constraints TOKENIZER.json.gz` for Mote and llguidance side by side.

Each grammar writes texts of random allowed tokens. The masks of the first pass are cold; later passes have other seeds,
and the masks that the first has made. llguidance computes every mask anew.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import statistics
import time
from pathlib import Path

import numpy as np

from llm_runner import Constraint, Grammar, Vocabulary

STRING = {"type": "string"}
PERSON = {
    "type": "object",
    "properties": {
        "name": STRING,
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "email": {"type": "string", "format": "email"},
        "note": {"type": "string", "maxLength": 200},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 5},
        "address": {"type": "object", "properties": {"street": STRING, "city": STRING}, "required": ["street", "city"]},
    },
    "required": ["name", "age", "email", "note", "tags", "address"],
}
JSON_LARK = r"""
start: value
value: object | array | STRING | NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: STRING ":" value
STRING: /"([^"\\\x00-\x1f]|\\["\\\/bfnrt])*"/
NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?/
"""
GRAMMARS = {
    "schema of a person": {"json_schema": PERSON},
    "any JSON value": {"json_schema": True},
    "JSON in Lark": {"grammar": JSON_LARK},
    "regex of a date": {"regex": "[0-9]{4}-[0-9]{2}-[0-9]{2}( [a-z]{3,9}){2}"},
}
CLOSING = (b'"', b'"}', b"}", b"]", b'",', b'"]')


def byte_alphabet() -> dict[str, int]:
    """GPT-2's characters for bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(others)}


def read_tokens(text: str) -> tuple[list[bytes], list[int]]:
    """Returns bytes by id and what ends a text, of a byte-level tokenizer.json."""
    file = json.loads(text)
    alphabet = byte_alphabet()
    added = {token["id"]: token for token in file["added_tokens"]}
    ids = file["model"]["vocab"]
    tokens = [b""] * (1 + max(*ids.values(), *added))
    for spelling, id in ids.items():
        if id not in added:
            tokens[id] = bytes(alphabet[character] for character in spelling)
    ends = [id for id, token in added.items() if "end" in token["content"]][:1]
    return tokens, ends


def text_of(mask, accept, tokens, ends, seed: int, length: int = 100) -> list[float]:
    """Follows random tokens; returns the seconds of the thread that each mask and accept took."""
    rng, times = random.Random(seed), []
    for _ in range(length):
        start = time.thread_time()
        words = mask()
        times.append(time.thread_time() - start)
        ids = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()
        ids = [id for id in ids if id not in ends]
        if not ids:
            break
        closing = [id for id in ids if id < len(tokens) and tokens[id] in CLOSING]
        id = rng.choice(closing) if closing and rng.random() < 0.1 else rng.choice(ids)
        start = time.thread_time()
        accept(id)
        times[-1] += time.thread_time() - start
    return times


def measure(start, tokens, ends, rounds: int, num_texts: int) -> list[list[float]]:
    passes = []
    for index in range(rounds):
        times: list[float] = []
        for seed in range(num_texts):
            mask, accept = start()
            times += text_of(mask, accept, tokens, ends, num_texts * index + seed)
        passes.append(times)
    return passes


def row(name: str, system: str, compile_seconds: float, passes: list[list[float]]) -> str:
    warm = sorted(t for times in passes[1:] for t in times)
    cells = [
        f"{1e3 * compile_seconds:.1f} ms",
        f"{1e6 * statistics.median(passes[0]):.1f} us",
        f"{1e6 * statistics.fmean(passes[0]):.1f} us",
        f"{1e6 * statistics.median(warm):.1f} us",
        f"{1e6 * statistics.fmean(warm):.1f} us",
        f"{1e6 * warm[int(len(warm) * 0.99)]:.1f} us",
    ]
    return f"| {name} | {system} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--texts", type=int, default=8, help="of a round")
    arguments = parser.parse_args()
    text = gzip.decompress(arguments.tokenizer.read_bytes()).decode()
    tokens, ends = read_tokens(text)
    vocabulary = Vocabulary(tokens, ends)
    print(f"{len(tokens)} tokens")
    print("| grammar | | compile | first texts: median | mean | later: median | mean | 99 % |\n" + "|---" * 8 + "|")
    for name, source in GRAMMARS.items():
        start = time.thread_time()
        whitespace = {"whitespace": "compact"} if "json_schema" in source else {}
        grammar = Grammar(vocabulary, **source, **whitespace)
        seconds = time.thread_time() - start

        def ours(grammar=grammar):
            constraint = Constraint(grammar)._core  # without the wrapper, as llguidance has none
            return constraint.mask, constraint.accept

        print(row(name, "Mote", seconds, measure(ours, tokens, ends, arguments.rounds, arguments.texts)), flush=True)
        figures = theirs(text, source, tokens, ends, arguments.rounds, arguments.texts)
        print(row(name, "llguidance", *figures), flush=True)


def theirs(text: str, source, tokens, ends, rounds: int, num_texts: int) -> tuple[float, list[list[float]]]:
    import llguidance

    tokenizer = llguidance.LLTokenizer(text)
    kind = next(iter(source))
    start = time.thread_time()
    if kind == "json_schema":
        compact = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
        grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(source[kind]), overrides=compact)
    elif kind == "regex":
        grammar = llguidance.LLMatcher.grammar_from_regex(source[kind])
    else:
        grammar = llguidance.LLMatcher.grammar_from_lark(source[kind])
    llguidance.LLMatcher(tokenizer, grammar)
    seconds = time.thread_time() - start

    def begin():
        matcher = llguidance.LLMatcher(tokenizer, grammar)
        return lambda: np.frombuffer(matcher.compute_bitmask(), np.uint8), matcher.consume_token

    return seconds, measure(begin, tokens, ends, rounds, num_texts)


if __name__ == "__main__":
    main()
