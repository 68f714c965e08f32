"""What the words of a command line mean beside names of models."""

import types
from importlib.metadata import version

import click
import pytest

from mote import commands
from mote.arguments import own_words, unknown


def test_the_version_has_what_the_runner_says_of_its_build(mote, monkeypatch):
    said = types.SimpleNamespace(stdout="mote-runner 9.9\ncommit abc\nbackends: cpu\n")
    monkeypatch.setattr(commands.subprocess, "run", lambda *arguments, **options: said)
    assert mote("--version").out == f"mote {version('mote-llm')}\ncommit abc\nbackends: cpu\n"


def test_a_version_is_told_without_a_runner(mote, monkeypatch):
    def missing():
        raise FileNotFoundError

    monkeypatch.setattr(commands, "runner_binary", missing)
    assert mote("--version").out == f"mote {version('mote-llm')}\n"


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("rnu", "there is no verb 'rnu': did you mean 'run'?"),
        ("lsit", "there is no verb 'lsit': did you mean 'list'?"),
        ("qqqqqq", "there is no verb 'qqqqqq'"),
    ],
)
def test_unknown_verbs(mote, word, sentence):
    result = mote(word)
    assert result.status == 2 and result.err.endswith(f"Error: {sentence}")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["pull", "org/x", "--yse"], "there is no option '--yse': did you mean '--yes'?"),
        (["rm", "org/x", "--zzzzzz"], "there is no option '--zzzzzz'"),
        (["--versoin"], "there is no option '--versoin': did you mean '--version'?"),
    ],
)
def test_unknown_options(mote, words, sentence):
    result = mote(*words)
    assert result.status == 2 and result.err.endswith(f"Error: {sentence}")


def test_other_errors_of_words_stay_as_they_are():
    with pytest.raises(click.UsageError, match="must be"), own_words():
        raise click.UsageError("must be")
    assert unknown("option", "--x", []) == "there is no option '--x'"
