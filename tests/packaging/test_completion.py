"""What a shell proposes for the words of `mote`."""

from __future__ import annotations

import shutil
import subprocess

import click
import pytest
from click.shell_completion import ShellComplete

from mote.cli import RUNNER_VERBS, cli
from mote.completion import runner_options


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MOTE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def proposed(*words: str) -> list[str]:
    *before, incomplete = words
    return [item.value for item in ShellComplete(cli, {}, "mote", "_").get_completions(before, incomplete)]


def test_verbs():
    assert set(proposed("")) >= set(cli.list_commands(click.Context(cli)))
    assert proposed("ins") == ["inspect"]


@pytest.mark.parametrize("verb", cli.list_commands(click.Context(cli)))
def test_options_of_every_verb(verb):
    assert "--help" in proposed(verb, "--") and all(name.startswith("--") for name in proposed(verb, "--"))
    if verb in RUNNER_VERBS:
        assert {name for name in runner_options(verb) if name.startswith("--")} == set(proposed(verb, "--"))


def test_options_of_the_runner_that_the_parser_spells_together():
    assert {"--mmap", "--no-mmap", "--threads"} <= set(proposed("run", "--"))
    assert "-t" in proposed("run", "-")


@pytest.mark.parametrize("verb", ["run", "chat", "serve", "eval"])
def test_models_are_files_that_end_in_mote(folder, verb):
    (folder / "small.mote").touch()
    (folder / "small.txt").touch()
    (folder / "smaller").mkdir()
    (folder / "smaller" / "a.mote").touch()
    assert proposed(verb, "sm") == ["small.mote"]
    assert proposed(verb, "smalle") == ["smaller/"]
    assert proposed(verb, "smaller/") == ["smaller/a.mote"]


def test_models_in_the_store(folder):
    model = folder / "home" / "models" / "org" / "name" / "8w.mote"
    model.parent.mkdir(parents=True)
    model.touch()
    assert proposed("run", "or") == ["org/name:8w"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_valid(shell, tmp_path):
    from click.testing import CliRunner

    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    text = CliRunner().invoke(cli, ["completion", shell]).output
    assert "_MOTE_COMPLETE" in text
    subprocess.run([shell, "-n"], input=text, text=True, check=True)
