"""What a mask costs a token: `python -m benchmarks.constraints TOKENIZER.json.gz` for Mote and llguidance side by side.

Each grammar writes texts of random allowed tokens. "First": nothing is known of the grammar's states. "New": other
texts, of which many states are new too. "Again": the texts of both once more, all of whose states are known; each token
counts with its median of the rounds, and with the least, because other programs share the machine. Mote and llguidance
take turns. llguidance computes every mask anew.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import json
import random
import statistics
import time
from collections.abc import Callable
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


@dataclasses.dataclass
class System:
    """One of those that are compared, with its grammar compiled."""

    name: str
    compile_seconds: float
    start: Callable[[], tuple[Callable, Callable]]  # a new text: mask() and accept(id)
    first: list[float] = dataclasses.field(default_factory=list)
    new: list[float] = dataclasses.field(default_factory=list)
    again: list[list[float]] = dataclasses.field(default_factory=list)  # of each round


def random_text(system: System, tokens, ends, seed: int, length: int = 100) -> tuple[list[int], list[float]]:
    """Follows random tokens; returns them and the seconds of the thread that each mask and accept took."""
    mask, accept = system.start()
    rng, chosen, times = random.Random(seed), [], []
    for _ in range(length):
        start = time.thread_time()
        words = mask()
        times.append(time.thread_time() - start)
        ids = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()
        ids = [id for id in ids if id not in ends]
        if not ids:
            break
        closing = [id for id in ids if id < len(tokens) and tokens[id] in CLOSING]
        chosen.append(rng.choice(closing) if closing and rng.random() < 0.1 else rng.choice(ids))
        start = time.thread_time()
        accept(chosen[-1])
        times[-1] += time.thread_time() - start
    return chosen, times


def repeat(system: System, ids: list[int]) -> list[float]:
    mask, accept = system.start()
    times = []
    for id in ids:
        start = time.thread_time()
        mask()
        accept(id)
        times.append(time.thread_time() - start)
    return times


def measure(systems: list[System], tokens, ends, rounds: int, num_texts: int) -> None:
    texts: dict[str, list[list[int]]] = {system.name: [] for system in systems}
    for seed in range(2 * num_texts):
        for system in systems:
            ids, times = random_text(system, tokens, ends, seed)
            (system.first if seed < num_texts else system.new).extend(times)
            texts[system.name].append(ids)
    for _ in range(rounds):
        for system in systems:
            system.again.append([t for ids in texts[system.name] for t in repeat(system, ids)])


def row(grammar: str, system: System) -> str:
    again = sorted(statistics.median(times) for times in zip(*system.again, strict=True))
    least = [min(times) for times in zip(*system.again, strict=True)]
    figures = (
        statistics.median(system.first), statistics.fmean(system.first), statistics.median(system.new),
        statistics.fmean(system.new), statistics.median(again), again[int(len(again) * 0.99)], statistics.median(least),
        max(least),
    )  # fmt: skip
    cells = [f"{1e3 * system.compile_seconds:.1f} ms", *(f"{1e6 * seconds:.1f} us" for seconds in figures)]
    return f"| {grammar} | {system.name} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("--rounds", type=int, default=7, help="of the texts again")
    parser.add_argument("--texts", type=int, default=8, help="first, and as many new ones")
    arguments = parser.parse_args()
    text = gzip.decompress(arguments.tokenizer.read_bytes()).decode()
    tokens, ends = read_tokens(text)
    vocabulary = Vocabulary(tokens, ends)
    print(f"{len(tokens)} tokens")
    columns = ["grammar", "", "compile", "first: median", "mean", "new: median", "mean"]
    columns += ["again: median", "99 %", "least: median", "most"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for name, source in GRAMMARS.items():
        systems = [ours(vocabulary, source), theirs(text, source)]
        measure(systems, tokens, ends, arguments.rounds, arguments.texts)
        for system in systems:
            print(row(name, system), flush=True)


def ours(vocabulary: Vocabulary, source) -> System:
    start = time.thread_time()
    whitespace = {"whitespace": "compact"} if "json_schema" in source else {}
    grammar = Grammar(vocabulary, **source, **whitespace)
    seconds = time.thread_time() - start

    def begin():
        constraint = Constraint(grammar)._core  # without the wrapper, as llguidance has none
        return constraint.mask, constraint.accept

    return System("Mote", seconds, begin)


def theirs(text: str, source) -> System:
    import llguidance

    tokenizer = llguidance.LLTokenizer(text)
    kind = next(iter(source))
    start = time.thread_time()
    if kind == "json_schema":
        compact = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
        schema = json.dumps({} if source[kind] is True else source[kind])
        grammar = llguidance.LLMatcher.grammar_from_json_schema(schema, overrides=compact)
    elif kind == "regex":
        grammar = llguidance.LLMatcher.grammar_from_regex(source[kind])
    else:
        grammar = llguidance.LLMatcher.grammar_from_lark(source[kind])
    llguidance.LLMatcher(tokenizer, grammar)
    seconds = time.thread_time() - start

    def begin():
        matcher = llguidance.LLMatcher(tokenizer, grammar)
        return lambda: np.frombuffer(matcher.compute_bitmask(), np.uint8), matcher.consume_token

    return System("llguidance", seconds, begin)


if __name__ == "__main__":
    main()
