"""Text from users stays text: its place in the prompt is known whatever the template does to it."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from llm_runner import TemplateError
from llm_runner.chat import render_prompt
from tests.llm_runner.chat_conversations import NEEDED, USUAL, assistant, system, user
from tests.llm_runner.test_chat_templates import TEMPLATES

CONTROL = re.compile(r"<\|[^|<>{}'\"\s]{1,40}\|>|</?[a-z_]{2,30}>|\[/?[A-Z_]{3,20}\]|<\uff5c[^\uff5c]{1,40}\uff5c>")


def control_tokens(template):
    """Returns what looks like a control token in a template, with the usual special tokens."""
    return sorted(set(CONTROL.findall(template)) | {"<s>", "</s>", "<|im_start|>", "<|im_end|>", "[INST]"})


def template_text(prompt, spans):
    """Returns the parts of a prompt that are the template's own, apart from each other."""
    data = prompt.encode()
    ends = [0, *(position for span in spans for position in span), len(data)]
    return [data[begin:end].decode() for begin, end in zip(ends[::2], ends[1::2], strict=True)]


def conversation(name, template, content):
    """Returns messages and arguments that the template renders."""
    arguments = dict(USUAL)
    for part, needed in NEEDED.items():
        arguments.update(needed if part in name else {})
    for messages in ([system(content), user(content), assistant(content), user(content)], [user(content)]):
        try:
            render_prompt(template, messages, add_generation_prompt=True, **arguments)
        except TemplateError:
            continue
        return messages, arguments
    raise AssertionError(f"{name} renders neither conversation")


def render(name, template, content):
    messages, arguments = conversation(name, template, content)
    return render_prompt(template, messages, add_generation_prompt=True, **arguments)


def words_of(parts):
    return [re.sub(r"\s+", "", part) for part in parts if part.strip()]


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_control_token_of_a_user_counts_as_the_templates(name):
    template = TEMPLATES[name].read_text()
    plain, spans = render(name, template, "zqx")
    assert "zqx" in [plain.encode()[begin:end].decode() for begin, end in spans]
    own = "".join(words_of(template_text(plain, spans)))
    tokens = control_tokens(template)
    assert len(tokens) >= 5
    for token in tokens:
        prompt, spans = render(name, template, f"zqx{token}zqx")
        found = template_text(prompt, spans)
        # What the template wrote has the token as often as for a message without it; the rest of them are marked.
        assert "".join(found).count(token) <= own.count(re.sub(r"\s+", "", token)), token
        assert "zqx" not in "".join(found), token


FIRST_CONTROL_ID = 10000  # behind the demo's vocabulary


@pytest.fixture(scope="module")
def all_control_tokens():
    return sorted({token for path in TEMPLATES.values() for token in control_tokens(path.read_text())})


@pytest.fixture(scope="module")
def speaker(with_tokenizer, all_control_tokens):
    """The demo model with every control token of every template among the special tokens of its tokenizer."""
    described = json.loads((Path(__file__).parents[2] / "examples" / "demo" / "tokenizer.json").read_text())
    described["added_tokens"] = [
        {"id": i, "content": token, "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for i, token in enumerate(all_control_tokens, FIRST_CONTROL_ID)
    ]
    return with_tokenizer(json.dumps(described).encode())


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_control_token_of_a_user_gets_its_id(name, speaker):
    template = TEMPLATES[name].read_text()

    def control_ids(content):
        messages, arguments = conversation(name, template, content)
        ids = speaker.apply_chat_template(messages, chat_template=template, add_generation_prompt=True, **arguments)
        return Counter(i for i in ids if i >= FIRST_CONTROL_ID)

    own = control_ids("zqx")
    for token in control_tokens(template):
        assert control_ids(f"zqx{token}zqx") <= own, token


OPERATIONS = [
    "m",
    "m | upper",
    "m | lower | title | capitalize",
    "m | trim",
    "m | replace('z', 'c')",
    "'x' | replace('x', m)",
    "m | indent(2, true)",
    "m[1:5] ~ m[::-1] ~ m[0]",
    "m + m",
    "'a' + m + 'b'",
    "'a' ~ m",
    "m * 2",
    "m.split('z') | join('-')",
    "m.split('z')[0]",
    "m.strip('<').rstrip('>')",
    "m | list | join",
    "[m, m] | join(', ')",
    "m | tojson",
    "{'k': m} | tojson(indent=2)",
    "[m, {'a': m}] | string",
    "'%s and %r' % (m, m)",
    "'{} {:>20} {!r}'.format(m, m, m)",
    "m % ()",
    "m.format()",
    "m | escape",
    "m | urlencode",
    "m | truncate(6, true, '', 0)",
    "m | center(40)",
    "m | string | safe",
    "m | striptags",
    "m.partition('z')[2]",
    "m | sort | join",
    "m | batch(3) | first | join",
    "m.splitlines()[0]",
    "m.removeprefix('<')",
    "m.zfill(30)",
    "m | map('upper') | join",
    "[m] | unique | list | first",
    "{'a': m}.values() | first",
    "namespace(x=m).x",
    "m if m else ''",
    "nope | default(m)",
    "messages | map(attribute='content') | join",
    "messages | groupby('content') | map('first') | join",
    "messages[0].items() | list",
]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_keep_marks(operation):
    template = "{% set m = messages[0].content %}{% set ns = namespace(v=" + operation + ") %}A{{ ns.v }}B"
    prompt, spans = render_prompt(template, [{"role": "user", "content": "qz<|zq|>qz"}])
    marked = b"".join(prompt.encode()[begin:end] for begin, end in spans).decode()
    assert re.search("[qzQZ]", marked)
    assert not re.search("[qzQZ]", "".join(template_text(prompt, spans)))


def test_macros_and_blocks_keep_marks():
    template = (
        "{% macro w(x) %}<{{ x }}>{% endmacro %}{% set b %}({{ w(messages[0].content) }}){% endset %}"
        "{% filter upper %}{{ b }}{% endfilter %}{{ w('c') }}"
    )
    prompt, spans = render_prompt(template, [{"role": "user", "content": "user"}])
    assert prompt == "(<USER>)<c>"
    assert spans == [(2, 6)]


def test_roles_are_the_templates_unless_they_are_no_words():
    template = "{% for m in messages %}<|{{ m.role }}|>{% endfor %}"
    prompt, spans = render_prompt(template, [{"role": "user"}, {"role": "x|>"}])
    assert (prompt, spans) == ("<|user|><|x|>|>", [(10, 13)])


def test_tools_and_documents_are_marked_and_variables_are_not():
    template = "{{ tools[0].name }}{{ documents[0].text }}{{ bos_token }}"
    prompt, spans = render_prompt(template, [], [{"name": "t"}], [{"text": "d"}], bos_token="<s>")
    assert (prompt, spans) == ("td<s>", [(0, 2)])


HOSTILE = {
    "steps": "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    "text": "{% set n = namespace(s='ab') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
    "memory": "{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
    "repeat": "{{ 'x' * 10 ** 12 }}{{ [1] * 10 ** 12 }}",
    "macro": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "tree": "{% macro m(n) %}{{ m(n - 1) ~ m(n - 1) if n }}{% endmacro %}{{ m(60) }}",
    "loop": "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "brackets": "{{ " + "[" * 5000 + "]" * 5000 + " }}",
    "signs": "{{ " + "-" * 5000 + "1 }}",
    "nots": "{{ " + "not " * 5000 + "1 }}",
    "ifs": "{% if 1 %}" * 5000 + "{% endif %}" * 5000,
    "elses": "{{ " + "1 if 0 else " * 5000 + "2 }}",
    "data": "{% set n = namespace(l=[]) %}{% for i in range(999) %}{% set n.l = [n.l] %}{% endfor %}{{ n.l }}",
    "shared": "{% set n = namespace(l=[]) %}{% for i in range(50) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}",
    "cycle": "{% set n = namespace() %}{% set n.a = n %}{{ n }}",
    "range": "{{ range(10 ** 12) }}",
    "width": "{{ '%999999999d' % 1 }}",
    "power": "{{ 10 ** 100 }}",
    "replace": "{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
    "find": "{% set a = 'a' * 4000000 %}{% for i in range(100000) %}{{ a.find('b') }}{% endfor %}",
    "batch": "{{ [1] | batch(10 ** 12, 'x') | list }}",
}
BUDGETS = r"more than \d+|deeper than \d+|overflow|Range too big|must be at most"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_templates_end_in_an_error(name):
    with pytest.raises(TemplateError, match=BUDGETS):
        render_prompt(HOSTILE[name], [])


def test_long_chains_are_no_nesting():
    chains = "{{ " + " + ".join(["1"] * 5000) + " }}{{ x" + " | string" * 5000 + " }}{{ 1" + " and 1" * 5000 + " }}"
    assert render_prompt(chains, [], x="y")[0] == "5000y1"
    branches = "{% if 0 %}" + "".join(f"{{% elif n == {i} %}}{i}" for i in range(2000)) + "{% endif %}"
    assert render_prompt(branches, [], n=1999)[0] == "1999"


def test_messages_that_nest_deeply_are_refused():
    deep = "leaf"
    for _ in range(100):
        deep = [deep]
    with pytest.raises(TemplateError, match="messages: JSON: lists and objects nest deeper than 64"):
        render_prompt("", [{"role": "user", "content": deep}])
