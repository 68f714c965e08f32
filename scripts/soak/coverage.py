"""How much of what reads files the tests run, and how many changed operators they notice."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.soak.figures import ROOT, Figure, Size, last_lines, run

# What reads what anybody may have made, and the programs that test it.
PARTS = {
    "runner/program": ["tests/runner/program/test_program", "tests/fuzz/program_mutations"],
    "tokenizer": ["tests/tokenizer/test_tokenizer", "tests/fuzz/tokenizer_mutations"],
    "runner/templates": ["tests/runner/chat/test_chat", "tests/fuzz/template_mutations"],
}
QUICK = ["--iterations", "3000"]
CHANGES = [
    (r"(?<![<-])<(?![<=])(?= )", "<="), (r" <= ", " < "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
    (r" && ", " || "), (r" \|\| ", " && "), (r" \+ 1\b", " + 2"), (r" - 1\b", ""), (r"\breturn true;", "return false;"),
    (r"\breturn false;", "return true;"), (r"\bif \(!", "if ("),
]  # fmt: skip


def _build(folder: Path, source: Path, flags: str, programs: list[str]) -> None:
    configure = ["cmake", "-S", source, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None", "-DMOTE_BUILD_CLI=OFF"]
    names = [Path(program).name for program in programs]
    for command in ([*configure, f"-DCMAKE_CXX_FLAGS={flags}"], ["cmake", "--build", folder, "--target", *names]):
        if (done := run(command)).returncode != 0:
            sys.exit(last_lines(done, 40))


def covered(size: Size) -> list[Figure]:
    folder = ROOT / "build" / "coverage"
    _build(folder, ROOT, "--coverage -O0", [program for programs in PARTS.values() for program in programs])
    for old in folder.rglob("*.gcda"):
        old.unlink()
    figures = []
    for part, programs in PARTS.items():
        for program in programs:
            run([folder / program, *(QUICK if "mutations" in program else [])])
        report = folder / "report.json"
        options = ["--exclude-throw-branches", "--exclude-unreachable-branches", "--json-summary", report]
        # Threads count without locks, so that a count may come out below zero (GCC bug 68080).
        options += ["--gcov-ignore-parse-errors", "negative_hits.warn_once_per_file"]
        done = run([sys.executable, "-m", "gcovr", "-r", ROOT, folder, "--filter", f"{ROOT}/{part}/", *options])
        if done.returncode != 0:
            sys.exit(last_lines(done))
        found = json.loads(report.read_text())
        lines, branches = f"{found['line_percent']:.1f} %", f"{found['branch_percent']:.1f} %"
        shown = f"{lines} of {found['line_total']:,} lines, {branches} of {found['branch_total']:,} branches"
        figures.append(Figure("R23", f"{part}, by C++ tests and mutators", shown, found["line_percent"] >= 80))
    return figures


def noticed(size: Size) -> list[Figure]:
    """Changes one operator after another in a copy of the sources, and runs the tests."""
    source, folder = ROOT / "build" / "mutants" / "source", ROOT / "build" / "mutants" / "build"
    shutil.rmtree(source, ignore_errors=True)
    for name in run(["git", "ls-files", "--cached", "--others", "--exclude-standard"]).stdout.splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    _build(folder, source, "-O1 -DNDEBUG", [programs[0] for programs in PARTS.values()])
    rng = random.Random(1)
    return [_part(source, folder, part, PARTS[part][0], size.count(70), rng) for part in PARTS]


def _part(source: Path, folder: Path, part: str, program: str, count: int, rng: random.Random) -> Figure:
    files = [path for path in sorted((source / part).rglob("*.cpp")) if "windows" not in path.name]
    made, killed, survivors = 0, 0, []
    for _ in range(20 * count):
        if made == count:
            break
        path = rng.choice(files)
        text = path.read_text()
        pattern, replacement = rng.choice(CHANGES)
        places = list(re.finditer(pattern, text))
        if not places:
            continue
        place = rng.choice(places)
        line = text.count("\n", 0, place.start())
        if text.splitlines()[line].lstrip().startswith(("//", "#", "static_assert")):
            continue
        path.write_text(text[: place.start()] + replacement + text[place.end() :])
        try:
            if run(["cmake", "--build", folder, "--target", Path(program).name]).returncode == 0:
                made += 1
                if _fails(folder / program):
                    killed += 1
                else:
                    survivors.append(
                        f"{path.relative_to(source)}:{line + 1} {place[0].strip()} -> {replacement.strip()}"
                    )
        finally:
            path.write_text(text)
    print(*survivors, sep="\n", flush=True)
    found = f"{killed} of {made} changed operators noticed ({100 * killed / max(made, 1):.0f} %)"
    return Figure("R23", f"{part}, by its C++ tests alone", found, killed >= 0.6 * made)


def _fails(program: Path) -> bool:
    try:
        return subprocess.run([program], capture_output=True, timeout=120).returncode != 0
    except subprocess.TimeoutExpired:
        return True


SUBJECTS = {"R23": lambda size: covered(size) + noticed(size)}
