#!/usr/bin/env python3
"""Prints what others can call of Swift modules, a declaration a line: apps/ios/Mote/mote.api, which tests compare.

swift symbolgraph-extract ... -output-dir FOLDER && scripts/swift_api.py FOLDER [MODULE ...]
"""

import json
import sys
from pathlib import Path

# What a compiler adds for a conformance, which differs between its versions.
SYNTHESIZED = "::SYNTHESIZED::"


def declarations(graph: dict) -> list[str]:
    lines = []
    for symbol in graph["symbols"]:
        if SYNTHESIZED in symbol["identifier"]["precise"]:
            continue
        text = "".join(fragment["spelling"] for fragment in symbol["declarationFragments"])
        *outer, _ = symbol["pathComponents"]
        lines.append(" ".join(f"{'.'.join(outer)}: {text}".split()) if outer else " ".join(text.split()))
    return sorted(set(lines))


def main() -> None:
    folder, *modules = sys.argv[1:]
    for path in sorted(Path(folder).glob("*.symbols.json")):
        graph = json.loads(path.read_text())
        # MODULE@OTHER: what a module adds to another one
        if path.stem.removesuffix(".symbols").split("@")[0] not in modules:
            continue
        print(f"// {path.stem.removesuffix('.symbols')}")
        print("\n".join(declarations(graph)))


if __name__ == "__main__":
    main()
