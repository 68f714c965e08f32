"""What sources that are made to stall a compiler cost: `python -m benchmarks.grammar_bombs [NAME ...]`.

Each is compiled for a vocabulary of bytes in a process of its own. Prints seconds of the processor, how far the
process's memory grew, and the end of what was said where it was refused.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from pathlib import Path

from llm_runner import Constraint, Grammar, Vocabulary
from llm_runner.errors import MoteError

PER_BOMB_SECONDS = 200
LONG_KEY = "k" * 480_000


def enum(count: int) -> dict:
    return {"enum": list(range(count))}


def patterns(count: int, spelling: str, value=lambda i: {}) -> dict:
    return {"type": "object", "patternProperties": {spelling % i: value(i) for i in range(count)}}


def constants(count: int, keyword: str) -> dict:
    return {keyword: [{"const": i} for i in range(count)]}


def tagged(count: int, keyword: str = "oneOf") -> dict:
    branches = [
        {
            "type": "object",
            "properties": {"kind": {"const": f"k{i}"}, f"p{i}": {"type": "integer"}},
            "required": ["kind"],
        }
        for i in range(count)
    ]
    return {keyword: branches}


def properties(count: int, is_required: bool, **others) -> dict:
    names = [f"property_{i}" for i in range(count)]
    required = {"required": names} if is_required else {}
    return {"type": "object", "properties": {name: {"type": "integer"} for name in names}, **required, **others}


def references(count: int, link: str) -> dict:
    """Definitions of which each refers to the next, by way of `link`."""
    definitions: dict = {f"d{count}": {"type": "null"}}
    for i in range(count):
        target = {"$ref": f"#/$defs/d{i + 1}"}
        definitions[f"d{i}"] = {
            "properties": {"type": "object", "properties": {"next": target}},
            "anyOf": {"anyOf": [target, {"const": i}]},
            "items": {"type": "array", "items": target},
            "$ref": target,
        }[link]
    return {"$ref": "#/$defs/d0", "$defs": definitions}


def crossed(count: int) -> dict:
    """allOf of schemas that share all their names."""
    names = [f"n{i}" for i in range(count)]
    return {"allOf": [{"type": "object", "properties": {n: {"minimum": i} for n in names}} for i in range(count)]}


def words(count: int, length: int = 8) -> list[str]:
    rng = random.Random(1)
    return ["".join(rng.choice("abcdefghijklmnop") for _ in range(length)) for _ in range(count)]


def chain(count: int, last_first: bool) -> str:
    rules = [f"r{i} ::= r{i + 1}" for i in range(count)] + [f'r{count} ::= "x"']
    return "root ::= r0\n" + "\n".join(reversed(rules) if last_first else rules)


def alternatives(count: int) -> str:
    return (
        "root ::= "
        + " | ".join(f"r{i}" for i in range(count))
        + "".join(f'\nr{i} ::= "a" [a-z]* "{i}"' for i in range(count))
    )


def circle(count: int) -> str:
    rules = "".join(f'r{i} ::= r{(i + 1) % count} "{i}" | "x{i}"\n' for i in range(count))
    return "root ::= r0\n" + rules


def lark_chain(count: int) -> str:
    return "start: r0\n" + "".join(f"r{i}: r{i + 1}\n" for i in range(count)) + f'r{count}: "x"\n'


def schemas() -> dict[str, dict]:
    return values() | objects()


def values() -> dict[str, dict]:
    return {
        "enum 80000 integers": enum(80_000),
        "enum 10000 strings": {"enum": words(10_000)},
        "enum 100 kB strings": {"enum": [f"{i}" + "x" * 10_000 for i in range(100)]},
        "two enums of 40000": {"allOf": [enum(40_000), enum(40_000)]},
        "anyOf 1900 constants": constants(1900, "anyOf"),
        "anyOf 20000 constants": constants(20_000, "anyOf"),
        "oneOf 1900 constants": constants(1900, "oneOf"),
        "oneOf 20000 constants": constants(20_000, "oneOf"),
        "oneOf 1000 tagged": tagged(1000),
        "anyOf 11 x 11 x 11": {"allOf": [{"anyOf": [{"const": i} for i in range(11)]} for _ in range(3)]},
        "oneOf of 40 enums of 1000": {"oneOf": [{"enum": list(range(1000 * i, 1000 * i + 1000))} for i in range(40)]},
        "maxLength 3000": {"type": "string", "maxLength": 3000},
        "multipleOf 997 x 15": {"prefixItems": [{"type": "integer", "multipleOf": 997 - i} for i in range(15)]},
        "maxItems 100000": {"type": "array", "items": {"type": "null"}, "maxItems": 100_000},
        "types 80000": {"type": ["string"] * 80_000, "enum": words(10_000)},
    }  # fmt: skip


def objects() -> dict[str, dict]:
    return {
        "patterns 400 anchored": patterns(400, "^a%d$"),
        "patterns 1400 anchored": patterns(1400, "^a%d$"),
        "patterns 1400 prefixes": patterns(1400, "^a%d_"),
        "patterns 700 anywhere": patterns(700, "a%d"),
        "patterns 1400 anywhere": patterns(1400, "a%d"),
        "patterns 1400 distinct": patterns(1400, "^a%d$", lambda i: {"const": i}),
        "patterns 200 anywhere, distinct": patterns(200, "a%d", lambda i: {"const": i}),
        "patterns 1400 anywhere, distinct": patterns(1400, "a%d", lambda i: {"const": i}),
        "patterns 20 with loops": patterns(20, "a.*b%d.*c", lambda i: {"const": i}),
        "patterns 300 x properties 300": {
            **patterns(300, "^x%d"), "properties": {f"p{i}": {} for i in range(300)}, "additionalProperties": False,
        },
        "properties 600": properties(600, False),
        "properties 5000": properties(5000, False),
        "properties 9000": properties(9000, False),
        "properties 20000": properties(20_000, False),
        "properties and required 5000": properties(5000, True),
        "required 30000": {"type": "object", "required": [f"r{i}" for i in range(30_000)]},
        "properties 3000, additional": properties(3000, False, additionalProperties={"type": "integer"}),
        "crossed 100": crossed(100),
        "crossed 190": crossed(190),
        "references 5000 by properties": references(5000, "properties"),
        "references 5000 by items": references(5000, "items"),
        "references 150 by anyOf": references(150, "anyOf"),
        "references 150 direct": references(150, "$ref"),
        "keys 80000": {"x-a": {str(i): 0 for i in range(80_000)}},
        "definitions 50000": {"$defs": {str(i): {} for i in range(50_000)}, "type": "null"},
        "extensions 50000, anyOf 1000": {**{f"x-{i}": 0 for i in range(50_000)}, **constants(1000, "anyOf")},
        "long key, anyOf 1900": {"$defs": {LONG_KEY: constants(1900, "anyOf")}, "$ref": "#/$defs/" + LONG_KEY},
        "formats 300": {"type": "object", "properties": {f"f{i}": {"type": "string", "format": "email"}
                                                         for i in range(300)}},
        "maxLength 100 x 200": {"type": "object", "properties": {f"m{i}": {"type": "string", "maxLength": 100}
                                                                 for i in range(200)}},
        "pattern of sets x 300": {"type": "object", "properties": {f"m{i}": {"type": "string", "pattern": "^[^a]{40}$"}
                                                                   for i in range(300)}},
    }  # fmt: skip


def regexes() -> dict[str, str]:
    return {
        "regex repetitions": "(((a{1000}){1000}){1000})",
        "regex of nothing": "(((){1000}){1000}){1000}",
        "regex subsets": "(a|b)*a(a|b){30}",
        "regex 18 subsets": "(a|b)*a(a|b){16}",
        "regex dots": ".{0,3000}",
        "regex 20000 words": "|".join(words(20_000)),
        "regex 1 MB text": "abcdefgh" * 130_000,
        "regex 1 MB of dots": "." * 1_000_000,
        "regex 1 MB set": "[" + "\\S" * 500_000 + "]",
        "regex 1 MB of sets": "[^a]" * 250_000,
        "regex stars": "(a*)*" * 200_000,
        "regex stars of one": "a*" * 4000,
        "regex optional": "a?" * 2000,
        "regex overlapping sets": "|".join(f"[a-{chr(98 + i % 24)}]" + f"x{i}" for i in range(20_000)),
    }


def grammars() -> dict[str, str]:
    return {
        "gbnf chain 18000": chain(18_000, False),
        "gbnf chain 18000, last first": chain(18_000, True),
        "gbnf 700 alternatives": alternatives(700),
        "gbnf 5000 alternatives": alternatives(5000),
        "gbnf circle 300": circle(300),
        "gbnf circle 10000": circle(10_000),
        "gbnf repetitions": 'root ::= ((("a"{1000}){1000}){1000})',
        "gbnf nothing": "root ::= " + '""' * 400_000,
        "gbnf doubling": "root ::= r0\n" + "".join(f"r{i} ::= r{i + 1} r{i + 1}\n" for i in range(60)) + 'r60 ::= "x"',
        "gbnf doubling of nothing": "root ::= r0\n"
        + "".join(f"r{i} ::= r{i + 1} r{i + 1}\n" for i in range(60)) + 'r60 ::= ""',
        "lark chain 18000": lark_chain(18_000),
        "lark 20000 words": "start: " + " | ".join(f'"{word}"' for word in words(20_000)),
        "lark 20000 words, any case": "start: " + " | ".join(f'"{word}"i' for word in words(20_000)),
        "lark ignored": "start: " + "A " * 20_000 + "\nA: /[a-z]+/\n" + "%ignore /[ \\t]+/\n" * 2000,
    }  # fmt: skip


def bombs() -> dict[str, dict[str, str]]:
    """Returns the arguments of `Grammar` by name."""
    return {
        **{name: {"json_schema": json.dumps(schema)} for name, schema in schemas().items()},
        **{name: {"regex": regex} for name, regex in regexes().items()},
        **{name: {"grammar": grammar} for name, grammar in grammars().items()},
    }


def memory_mb(line: str) -> float:
    """Returns a line of the process's status on Linux, VmRSS or VmHWM; 0 elsewhere."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(each.split()[1]) / 1024 for each in lines if each.startswith(line)), 0.0)


def compile_one() -> None:
    """Reads a source and prints what it cost."""
    source = json.loads(sys.stdin.read())
    vocabulary = Vocabulary([bytes([i]) for i in range(256)] + [b""], [256])
    before = memory_mb("VmRSS")
    if before:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    start = time.process_time()
    outcome = "compiled"
    try:
        grammar = Grammar(vocabulary, **source)
    except MoteError as error:
        outcome = "refused: " + str(error)[:150]
    seconds = time.process_time() - start
    grown = memory_mb("VmHWM") - before
    mask_seconds = 0.0
    if outcome == "compiled":
        start = time.process_time()
        try:
            write_some(Constraint(grammar))
        except MoteError as error:
            outcome = "generating: " + str(error)[:150]
        mask_seconds = time.process_time() - start
    print(json.dumps([seconds, grown, mask_seconds, outcome]))


def write_some(constraint: Constraint, num_tokens: int = 20) -> None:
    rng = random.Random(1)
    for _ in range(num_tokens):
        ids = [int(id) for id in constraint.allowed() if id != 256]
        if not ids:
            return
        constraint.accept(rng.choice(ids))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; none: all")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        return compile_one()
    print("| source | bytes | compile | memory | 20 tokens | |\n|---|---:|---:|---:|---:|---|")
    for name, source in bombs().items():
        if arguments.names and not any(part in name for part in arguments.names):
            continue
        command = [sys.executable, "-m", "benchmarks.grammar_bombs", "--one"]
        text = json.dumps(source)
        size = len(next(iter(source.values())))
        try:
            done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=PER_BOMB_SECONDS)
        except subprocess.TimeoutExpired:
            print(f"| {name} | {size} | > {PER_BOMB_SECONDS} s | | | |", flush=True)
            continue
        if done.returncode != 0:
            print(f"| {name} | {size} | | | | exit {done.returncode}: {done.stderr[-200:]} |", flush=True)
            continue
        seconds, grown, mask_seconds, outcome = json.loads(done.stdout)
        row = f"| {name} | {size} | {seconds:.3f} s | {grown:.0f} MB | {mask_seconds:.3f} s | {outcome} |"
        print(row, flush=True)


if __name__ == "__main__":
    main()
