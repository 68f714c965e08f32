"""What each part of Mote weighs in a stripped library, by the map that lld wrote: the table of docs/size.md.

  scripts/size.py everything=build/size/everything --update docs/size.md

A folder is of a build as it is shipped, compiled as one when it is linked. FOLDER-parts is one by the preset `size`,
where archives are thin and sources compiled one by one, so that the map names the object of each source.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

# 10^6 bytes that a library must not exceed: docs/size.md says what the aim is.
MOST_MB = {"everything": 3.0, "the demo file": 1.7}
LIBRARY = "apps/android/mote/src/main/cpp/libmote.so"
# What a part is called, and the objects that it is made of; the first that matches takes an object.
PARTS = (
    ("`linear.codes`: products with int8 activations", r"/ops/linear/codes_"),
    ("`linear.groups`: with activations rounded in groups", r"/ops/linear/groups_int8"),
    ("`linear.floats`: with float activations", r"/ops/linear/(groups_)?floats_"),
    ("ops `linear`, `gated_linear`", r"/ops/linear/"),
    (r"ops of `kernels/ops/\1/`", r"mote_kernels\w*\.dir/ops/(\w+)/"),
    ("registries of ops and kernels, what kernels share", r"mote_kernels"),
    ("`tokenizer.compile`", r"mote_tokenizer_compile"),
    ("`tokenizer.bpe`", r"mote_tokenizer\.dir/model/(bpe|merge)\."),
    ("`tokenizer.unigram`", r"mote_tokenizer\.dir/model/unigram\."),
    ("`tokenizer.wordpiece`", r"mote_tokenizer\.dir/model/wordpiece\."),
    ("`tokenizer.sentencepiece`", r"mote_tokenizer\.dir/(model|normalize)/sentencepiece"),
    ("`tokenizer.unicode_forms`", r"mote_tokenizer\.dir/normalize/(bert|unicode_form|strip_accents)\."),
    ("`tokenizer.charsmap`", r"mote_tokenizer\.dir/normalize/(charsmap|precompiled)\."),
    ("`tokenizer.regex`: PCRE2", r"libpcre2|mote_tokenizer\.dir/pretokenize/regex"),
    ("tokenizers: the rest", r"mote_tokenizer\.dir"),
    ("Unicode tables: utf8proc", r"libutf8proc"),
    ("`templates`", r"mote_templates"),
    ("`grammars.json_schema`", r"mote_grammars\.dir/json_schema/"),
    (r"`grammars.\1`", r"mote_grammars\.dir/(regex|gbnf|lark)\."),
    ("grammars: the rest", r"mote_grammars"),
    (r"`backends.\1`", r"mote_(xnnpack|vulkan|qnn)"),
    ("`backends/proof/`: what backends are judged by", r"mote_proof"),
    ("`backends/gpu/`, `backends/assets/`: what several backends share", r"mote_(gpu|assets)"),
    ("`embeddings`", r"mote_embedding|mote_capi\.dir/embedding"),
    ("`reports`", r"mote_model\.dir/describe|mote_session\.dir/golden|mote_program\.dir/machine"),
    ("`store`", r"mote_store|mote_capi\.dir/store"),
    ("`advice`", r"mote_advice|mote_capi\.dir/advice"),
    (r"`runner/\1/`", r"mote_(program|model|session|generation|chat|replies|capi)\.dir"),
    ("`base/`", r"mote_base"),
    ("native methods of Java and Kotlin", r"mote_java"),
    ("the C++ library", r"libstdc\+\+|libgcc|libc\+\+|/crt|libsupc"),
)
OTHER = "the linker's own: strings, symbols, relocations, stubs"
# A section of an object: address, twice, size, alignment, object:(section).
SECTION = re.compile(r"^ *[0-9a-f]+ +[0-9a-f]+ +([0-9a-f]+) +\d+ {9}(\S.*):\((\.[^)]*)\)$")
EMPTY = re.compile(r"^\.(bss|tbss)")  # take no room in the file


def part_of(path: str) -> str:
    for name, pattern in PARTS:
        if found := re.search(pattern, path):
            return found.expand(name)
    return OTHER


def sections(text: str) -> list[tuple[str, int]]:
    """The object and bytes of each section in the library's file."""
    found = (SECTION.match(line) for line in text.splitlines())
    return [(m[2], int(m[1], 16)) for m in found if m and not EMPTY.match(m[3])]


def weights(build: Path) -> Counter[str]:
    """Bytes of each part, and under OTHER what of the library no object has brought."""
    parts: Counter[str] = Counter()
    for path, size in sections((build / "mote.map").read_text()):
        parts[part_of(path)] += size
    parts[OTHER] += (build / LIBRARY).stat().st_size - sum(parts.values())
    return parts


def table(builds: dict[str, Path]) -> str:
    parts = {name: folder.with_name(f"{folder.name}-parts") for name, folder in builds.items()}
    columns = {name: weights(folder) for name, folder in parts.items()}
    first = columns[next(iter(builds))]
    names = sorted({name for column in columns.values() for name in column}, key=lambda name: -first[name])
    lines = [f"| part | {' | '.join(f'{name}, kB' for name in builds)} |", "|---|" + "---|" * len(builds)]
    lines += [f"| {name} | {' | '.join(f'{columns[b][name] / 1000:.0f}' for b in builds)} |" for name in names]
    for name, folders in (("all parts", parts), ("**the library, compiled as one**", builds)):
        totals = [f"{(folder / LIBRARY).stat().st_size / 1000:.0f}" for folder in folders.values()]
        lines.append(f"| {name} | {' | '.join(totals)} |")
    return "\n".join(lines) + "\n"


def replaced(page: str, name: str, new: str) -> str:
    """The page with `new` between the comments that name a table."""
    begin, end = f"<!-- {name} -->\n\n", f"\n<!-- end of {name} -->"
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{name}: the page has no such table")
    return before + begin + new + end + after


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--update", type=Path, metavar="PAGE", help="write the table there, not to standard output")
    parser.add_argument("--table", default="sizes", help="the name of the table in the page")
    arguments = parser.parse_args()
    builds = {name: Path(folder) for name, folder in (build.split("=", 1) for build in arguments.builds)}
    text = table(builds)
    if arguments.update:
        arguments.update.write_text(replaced(arguments.update.read_text(), arguments.table, text))
    else:
        print(text, end="")
    sizes = {name: (folder / LIBRARY).stat().st_size / 1e6 for name, folder in builds.items()}
    large = [
        f"{name}: {size:.2f} MB: must be at most {MOST_MB[name]} MB"
        for name, size in sizes.items()
        if size > MOST_MB.get(name, size)
    ]
    print(*large, sep="\n", file=sys.stderr)
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main())
