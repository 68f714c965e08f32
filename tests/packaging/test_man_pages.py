"""Man pages say what the programs take: every verb, every option."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from llm_runner import describe_options
from mote.cli import RUNNER_VERBS, cli
from mote.commands import runner_binary
from mote.completion import runner_options

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("man1")
    table = folder / "options.json"
    table.write_text(json.dumps(describe_options()))
    script = [sys.executable, ROOT / "scripts" / "make_man_pages.py", folder, "--runner", runner_binary()]
    subprocess.run([*script, "--options", table], check=True)
    return {path.stem: path.read_text() for path in folder.glob("*.1")}


def plain(page: str) -> str:
    return page.replace("\\-", "-")


def test_every_verb_has_a_page_and_stands_in_that_of_mote(pages):
    verbs = cli.list_commands(click.Context(cli))
    assert set(pages) == {"mote", *(f"mote-{verb}" for verb in verbs)}
    for verb in verbs:
        assert f"\n.B {verb}\n" in plain(pages["mote"])


@pytest.mark.parametrize("verb", cli.list_commands(click.Context(cli)))
def test_every_option_stands_in_the_page_of_its_verb(pages, verb):
    if verb in RUNNER_VERBS:
        names = runner_options(verb)
    else:
        command = cli.commands[verb]
        params = command.get_params(click.Context(command))
        names = [name for param in params if isinstance(param, click.Option) for name in param.opts]
    named = " ".join(line for line in plain(pages[f"mote-{verb}"]).splitlines() if line.startswith(".B "))
    spelled = set(named.replace(",", " ").replace("/", " ").split())
    assert "--help" in names and set(names) - spelled == set()


def test_the_formatter_of_manuals_has_no_complaint(pages, tmp_path):
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    for name, text in pages.items():
        (tmp_path / f"{name}.1").write_text(text)
    said = subprocess.run(
        ["groff", "-man", "-ww", "-z", *sorted(tmp_path.glob("*.1"))], check=True, capture_output=True, text=True
    )
    assert said.stderr == ""
