"""Real chat templates render to the byte as in transformers, and fail with the same message."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from llm_runner import TemplateError, render_chat_template
from tests.llm_runner.chat_conversations import CONVERSATIONS, conversation

ROOT = Path(__file__).parents[2]
SHARED = ROOT / ".." / "shared" / "data" / "chat-templates"
TEMPLATES = {path.stem: path for path in sorted(SHARED.glob("*.jinja"))} if SHARED.is_dir() else {}
TEMPLATES["examples-demo"] = ROOT / "examples" / "demo" / "chat_template.jinja"
LONGEST_MESSAGE = 1000  # of an error of the C API


def outcome(render):
    """Returns ("text", what was rendered) or ("error", the message)."""
    try:
        return "text", render()
    except Exception as error:
        return "error", str(error)[:LONGEST_MESSAGE]


def expected(template, messages, **arguments):
    return outcome(lambda: render_jinja_template([messages], chat_template=template, **arguments)[0][0])


def actual(template, messages, **arguments):
    return outcome(lambda: render_chat_template(template, messages, **arguments))


def test_the_shared_templates_are_there():
    if len(TEMPLATES) == 1:
        pytest.skip(f"{SHARED} is not there: only the example's template is tested")
    assert len(TEMPLATES) > 30


@pytest.mark.parametrize("name", TEMPLATES)
def test_renders_as_transformers(name):
    template = TEMPLATES[name].read_text()
    rendered = 0
    for case in CONVERSATIONS:
        for add_generation_prompt in (False, True):
            messages, arguments = conversation(case, name)
            arguments["add_generation_prompt"] = add_generation_prompt
            found = actual(template, messages, **arguments)
            messages, arguments = conversation(case, name)
            wanted = expected(template, messages, **arguments, add_generation_prompt=add_generation_prompt)
            assert found == wanted, (case, add_generation_prompt)
            rendered += wanted[0] == "text"
    assert rendered >= 25  # the rest are refused by both, with one message


def test_errors_are_those_of_the_package():
    with pytest.raises(TemplateError, match="^only users$"):
        render_chat_template("{{ raise_exception('only users') }}", [])
