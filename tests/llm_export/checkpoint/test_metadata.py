"""What a file says about its model is what the checkpoint says."""

from pathlib import Path

import pytest
from transformers import AutoTokenizer

from llm_export.checkpoint.metadata import max_positions, self_contained_template
from llm_runner import render_chat_template

DEMO = Path(__file__).parents[3] / "examples" / "demo"


@pytest.mark.parametrize(
    "template", ["{{ bos_token }}x{{ eos_token }}", "\n{{ bos_token }}", "{% if true %}\n{{ eos_token }}"]
)
def test_templates_know_their_special_tokens(template):
    closed = template + ("{% endif %}" if "{% if" in template else "")
    config = {"bos_token": {"content": '<"s">'}, "eos_token": "</s>"}
    expected = render_chat_template(closed, [], bos_token='<"s">', eos_token="</s>")
    assert render_chat_template(self_contained_template(closed, config), []) == expected


def test_templates_without_special_tokens_are_kept_to_the_byte():
    assert self_contained_template("{{ messages }}", {"bos_token": "<s>"}) == "{{ messages }}"


class Config:
    def __init__(self, **fields):
        self.__dict__.update(fields)


def test_positions_by_any_name():
    assert max_positions(Config(max_position_embeddings=77)) == 77
    assert max_positions(Config(max_seq_len=99)) == 99
    assert max_positions(Config()) == 1 << 20


def test_demo_chat_renders_as_transformers():
    messages = [
        {"role": "user", "content": "Hi <there>"},
        {"role": "assistant", "content": "x"},
        {"role": "user", "content": "y"},
    ]
    tokenizer = AutoTokenizer.from_pretrained(DEMO)
    expected = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    template = (DEMO / "chat_template.jinja").read_text()
    assert render_chat_template(template, messages, add_generation_prompt=True) == expected


TEMPLATES = [
    "{%- for m in messages %}{%- if loop.first and m.role == 'system' %}[{{ m.content | trim }}]{%- continue %}"
    "{%- endif %}\n"
    "  {{ m.role }}: {{ m | tojson }}\n{%- endfor %}",
    "{% for m in messages %}\n    {% if m['role'] == 'assistant' %}{% generation %}{{ m['content'] }}"
    "{% endgeneration %}\n"
    "    {% else %}\n<{{ m['content'] }}>\n    {% endif %}\n{% endfor %}",
    "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}"
    "{{ {'b': '<é>', 'a': [1, none, true]} | tojson(indent=2) }}",
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_templates_render_as_transformers(template):
    messages = [
        {"role": "system", "content": " s "},
        {"role": "user", "content": "é"},
        {"role": "assistant", "content": "a"},
    ]
    tokenizer = AutoTokenizer.from_pretrained(DEMO)
    expected = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False)
    assert render_chat_template(template, messages) == expected
