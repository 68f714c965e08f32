"""`mote eval`: a text or tasks, and what either needs."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "give --text FILE or --tasks NAMES"),
        (["--tasks", "a", "--text", "b"], "one of the two"),
        (["--tasks", "a", "--checkpoint", "b"], "--checkpoint goes with --text, not with --tasks"),
        (["--tasks", "a", "--stride", "8"], "--stride goes with --text, not with --tasks"),
        (["--text", "a", "--num-fewshot", "0"], "--num-fewshot goes with --tasks, not with --text"),
        (["--text", "a", "--apply-chat-template"], "--apply-chat-template goes with --tasks, not with --text"),
        (["--tasks", "a", "--limit", "0"], "--limit"),
    ],
)
def test_options_that_do_not_go_together(mote, arguments, expected):
    result = mote("eval", "model.mote", *arguments)
    assert result.status == 2 and expected in result.err and result.out == ""


def test_a_missing_extra_is_named_with_the_line_that_installs_it(mote, monkeypatch):
    monkeypatch.setattr("mote.extras.find_spec", lambda name: None)
    result = mote("eval", "model.mote", "--tasks", "arc_easy")
    assert result.status == 2
    assert "mote eval --tasks needs lm_eval, which is not installed: pip install 'mote-llm[eval]'" in result.err
