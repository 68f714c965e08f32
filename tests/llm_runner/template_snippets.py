"""Small templates over VARIABLES: the language, its filters, tests and methods."""

from __future__ import annotations

from pathlib import Path

VARIABLES = {
    "s": "Hello, World",
    "u": "\u00c4pfel \u00df \u0130 \u4f60\u597d \U0001f600 na\u00efve",
    "lines": "one\n\ntwo\r\nthree\x0bfour\u2028five",
    "html": '<a href="x">T&C\'s</a>',
    "blank": "",
    "n": 7,
    "neg": -7,
    "zero": 0,
    "big": 2**62,
    "f": 2.5,
    "tiny": 1e-7,
    "huge": 1.5e20,
    "yes": True,
    "no": False,
    "nil": None,
    "xs": [3, 1, 2],
    "words": ["pear", "Apple", "fig", "apple"],
    "nested": [[1, [2, 3]], {"k": ["v", None, True]}],
    "d": {"b": 1, "a": [1, 2], "C": {"x": "y"}, "items": "shadow"},
    "people": [
        {"name": "Ann", "age": 30, "city": {"name": "Oslo"}, "tags": []},
        {"name": "bob", "age": 25, "city": {"name": "Bonn"}, "tags": ["x"]},
        {"name": "Cid", "age": 30, "city": {"name": "oslo"}},
    ],
}

WHITE_SPACE = [
    "a\n{% if yes %}\nb\n{% endif %}\nc\n",
    "a\n   {% if yes %}   \n  b\n   {% endif %}\nc",
    "a  {% if yes %} b {% endif %} c",
    "  {%+ if yes %} b\n  {%+ endif %}\nc",
    "a {%- if yes +%}\n b {%- endif -%} \n c",
    "a \n {{- n -}} \n b",
    "a \n {{ n }} \n b\n\n",
    "x\n  {# comment #}\n  y {#- c -#}\n z {# d -#}\n\n  w",
    "  {# c #}{{ n }}\n\t{% set x = 1 %}\t\n{{ x }}",
    "{% for x in xs %}\n  {{ x }}\n{% endfor %}\n",
    "{% for x in xs -%}\n  {{ x }}\n{%- endfor %}\n",
    "line\r\nwindows\rold{% if yes %}\r\nx{% endif %}\r\n",
    "\n\n{{ n }}\n\n",
    "{{ n }}\n",
    "{% if yes %}\n\n a{% endif %}",
    "a{# c #}\nb\n{#- d #}\nc{#+ e +#}\nd",
    "  {% raw %}\n {{ x }}\n  {% endraw %}\n y",
    "a {%- raw -%} \n b {%- endraw -%} \n c",
    "a\n  {%+ raw +%}\n{{",
    "{{ '\n' }}|{{ 'a\r\nb' }}",
    "\u00a0\u3000{%- if yes -%}\u00a0x\u2003{%- endif -%}\u2028y",
    "{%- macro m() -%}\n  x\n{%- endmacro -%}\n{{ m() }}",
    "\x0c {% if yes %}\x0b{% endif %}",
    "{%if yes%}a{%endif%}{{n}}{%-if yes-%} b {%-endif-%}{{-n-}}",
    "{% if yes %}a{% endif %}\n{% if yes %}b{% endif %}\n",
    "{ { n } } {% if no %}{% endif %} { % x % } #} %} }}",
    "{{ {} }}{{ {'a': 1}['a'] }}{{{}}}",
    "",
    "\n",
    "plain",
]

FOLDER = Path(__file__).parents[1] / "fixtures" / "template_snippets"
GROUPS = {path.stem: path.read_text().splitlines() for path in sorted(FOLDER.glob("*.txt"))}  # one template a line
