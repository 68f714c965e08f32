"""Every example of README, docs, CONTRIBUTING and the folders' READMEs works as it is written."""

from __future__ import annotations

import dataclasses
import re
import subprocess

import pytest

from tests.docs import command_check
from tests.docs.blocks import blocks_of, commands_of, spans_of
from tests.docs.page_runner import ROOT

LISTED = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
PAGES = {name: (ROOT / name).read_text() for name in LISTED.split() if (ROOT / name).is_file()}
BLOCKS = {name: blocks_of(name, source) for name, source in PAGES.items()}
RUN = {name: [b for b in blocks if b.kind != "text" and not b.not_run] for name, blocks in BLOCKS.items()}
COMMAND = re.compile(r"(?:\.venv/bin/)?(mote|mote-runner|make|cmake|ctest|pip|python|pytest) [a-z-]")


@pytest.mark.parametrize("page", [name for name, blocks in RUN.items() if blocks])
def test_examples_run(page, page_runner):
    for block in RUN[page]:
        page_runner.run(block)


@pytest.mark.parametrize(("features", "threads"), [("none", 1), ("avx2", 3)])
def test_the_transcript_is_the_same_on_other_cpus(features, threads, request, monkeypatch):
    monkeypatch.setenv("MOTE_CPU_FEATURES", features)
    runner = request.getfixturevalue("page_runner")
    transcript = next(block for block in BLOCKS["README.md"] if block.text.startswith("$ "))
    commands = [(command, shown) for command, shown in commands_of(transcript.text) if "| mote" in command]
    assert len(commands) == 2
    for command, shown in commands:
        runner.run(dataclasses.replace(transcript, text=f"$ {command} --threads {threads}\n{shown}"))


@pytest.mark.parametrize("page", PAGES)
def test_commands_name_what_exists(page):
    for block in BLOCKS[page]:
        for command, _ in commands_of(block.text) if block.kind == "shell" else ():
            command_check.check(command)
    for span in spans_of(PAGES[page]):
        if COMMAND.match(span):
            command_check.check(span)


def test_examples_of_the_help_name_what_exists():
    shown = "\n".join(text.partition("Examples:\n")[2] for text in command_check.all_help().values())
    examples = re.findall(r"^  ((?:[A-Z_]+=\S+ )?(?:mote|mote-runner|cat) .+)$", shown, re.MULTILINE)
    assert len(examples) >= 10
    for command in examples:
        command_check.check(command)


@pytest.mark.parametrize("page", PAGES)
def test_flags_and_names_of_the_c_api_exist(page):
    known = command_check.every_flag()
    for span in spans_of(PAGES[page]):
        for flag in re.findall(r"^--[a-z][a-z0-9-]+", span):
            assert flag in known, f"{page}: `{span}`: no command has {flag}"
        for name in re.findall(r"\b(?:mote_\w+|MOTE_[A-Z_]*[A-Z])\b(?![*<:])", span):
            assert command_check.exists_in_sources(name), f"{page}: `{span}`: no source has {name}"


@pytest.mark.parametrize("page", PAGES)
def test_no_example_is_taken_for_text(page):
    looks_like_code = re.compile(r"[;{](\s*/.*)?$|^\{| --[a-z]|^\w+\(", re.MULTILINE)
    for block in BLOCKS[page]:
        assert block.kind != "text" or not looks_like_code.search(block.text), f"{block.place}: what is it?"
