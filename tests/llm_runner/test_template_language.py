"""The template language: jinja2 in transformers' environment is the oracle, for text and for the words of errors."""

from __future__ import annotations

import copy

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, assume, given, settings
from transformers.utils.chat_template_utils import _cached_compile_jinja_template

from llm_runner import render_chat_template
from tests.llm_runner.template_snippets import GROUPS, VARIABLES, WHITE_SPACE

LONGEST_MESSAGE = 1000


def expected(template):
    try:
        compiled = _cached_compile_jinja_template(template)
        variables = copy.deepcopy(VARIABLES)
        return "text", compiled.render(
            messages=[], tools=None, documents=None, add_generation_prompt=False, **variables
        )
    except Exception as error:
        return "error", str(error)[:LONGEST_MESSAGE]


def actual(template):
    try:
        return "text", render_chat_template(template, [], **VARIABLES)
    except Exception as error:
        return "error", str(error)[:LONGEST_MESSAGE]


ALL = [(group, snippet) for group in GROUPS for snippet in GROUPS[group]]


@pytest.mark.parametrize(("group", "snippet"), ALL)
def test_snippet(group, snippet):
    assert actual(snippet) == expected(snippet)


@pytest.mark.parametrize("template", WHITE_SPACE)
def test_white_space(template):
    assert actual(template) == expected(template)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{% break %}", "'break' outside loop"),
        ("{% macro m() %}{% continue %}{% endmacro %}", "'continue' not properly in loop"),
        ("{% for x in xs %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "'break' outside loop"),
    ],
)
def test_jumps_outside_of_loops(template, message):
    """Python adds a line number of the code that jinja2 compiled."""
    assert actual(template) == ("error", message)
    kind, text = expected(template)
    assert (kind, text.split(" (")[0]) == ("error", message)


def binary(children):
    operators = st.sampled_from(
        ["+", "-", "*", "//", "/", "%", "~", "==", "!=", "<", ">=", "in", "not in", "and", "or"]
    )
    return st.tuples(children, operators, children).map(lambda parts: "({} {} {})".format(*parts))


def applied(children):
    filters = st.sampled_from(
        [
            "upper",
            "length",
            "list",
            "first",
            "last",
            "string",
            "int",
            "float",
            "tojson",
            "default('x', true)",
            "join('-')",
        ]
        + ["reverse", "sort", "trim", "title", "abs", "round(1)", "sum", "unique | list", "map('string') | list", "min"]
        + ["replace('a', 'bc')", "select | list", "batch(2) | list", "indent(2)", "truncate(5)", "wordcount", "escape"]
    )
    methods = st.sampled_from(
        [
            "split()",
            "split('a')",
            "strip('ab')",
            "upper()",
            "items()",
            "get('a')",
            "startswith('a')",
            "find('b')",
            "title()",
        ]
        + ["splitlines()", "join(['x', 'y'])", "count('a')", "index(1)", "real", "x", "partition('b')", "isdigit()"]
    )
    tests = st.sampled_from(
        ["string", "number", "mapping", "iterable", "none", "defined", "odd", "sequence", "true", "lower"]
    )
    slices = st.tuples(*[st.one_of(st.just(""), st.integers(-4, 4).filter(bool).map(str))] * 3).map(":".join)
    return st.one_of(
        st.tuples(children, filters).map(lambda parts: "({} | {})".format(*parts)),
        st.tuples(children, methods).map(lambda parts: "({}).{}".format(*parts)),
        st.tuples(children, tests).map(lambda parts: "({} is {})".format(*parts)),
        st.tuples(children, children).map(lambda parts: "({})[{}]".format(*parts)),
        st.tuples(children, slices).map(lambda parts: "({})[{}]".format(*parts)),
        st.tuples(children, children, children).map(lambda parts: "({} if {} else {})".format(*parts)),
        children.map("(not {})".format),
        children.map("(-{})".format),
        st.lists(children, max_size=3).map(lambda items: "[" + ", ".join(items) + "]"),
        st.tuples(children, children).map(lambda parts: "{{'a': {}, 'b': {}}}".format(*parts)),
        st.tuples(children, children).map(lambda parts: "'%s|%r' % ({}, {})".format(*parts)),
    )


LITERALS = st.one_of(
    st.sampled_from([*VARIABLES, "nope", "none", "true", "false", "''", "'aB c'", "[]", "{}", "(1, 2)", "range(3)"]),
    st.integers(-100, 100).map(str),
    st.floats(-1e6, 1e6).map(repr),
    st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_characters="'\\"), max_size=5).map(
        "'{}'".format
    ),
)
EXPRESSIONS = st.recursive(LITERALS, lambda children: st.one_of(binary(children), applied(children)), max_leaves=8)


@given(EXPRESSIONS)
@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
def test_generated_expression(expression):
    template = "{{ " + expression.replace("{{", "{ {").replace("}}", "} }") + " }}"
    wanted, found = expected(template), actual(template)
    assume(not any(text in wanted[1] for text in BEYOND))
    assume(not any(text in found[1] for text in (*FOLDED, *LIMITS)))
    assert found == wanted


BEYOND = (" object at 0x", "<built-in method", "complex")
# Integers have 64 bits here and any size there: test_integers_beyond_64_bits.
OVERFLOW = "does not fit 64 bits"
# Rendering is bounded here: test_hostile_templates_end_in_an_error.
LIMITS = (
    OVERFLOW,
    "the template makes a text of more than",
    "the template needs more than",
    "the template takes more than",
)
# jinja2 computes slices of constants beforehand, and then one that fails is undefined instead of an error.
FOLDED = ("object is not subscriptable", "unhashable type: 'slice'")


# fmt: off
FILTERS = [
    "abs", "round", "round(1)", "round(1,'ceil')", "round(1,'floor')", "int", "float", "upper", "lower", "title",
    "capitalize", "trim", "length", "list", "first", "last", "string", "tojson", "join(',')", "reverse",
    "reverse|list", "sort", "sum", "unique|list", "map('upper')|list", "min", "max", "replace('a','b')",
    "select|list", "batch(2)|list", "indent(2)", "truncate(5)", "wordcount", "escape", "dictsort", "items|list",
    "urlencode", "center(5)", "striptags", "xmlattr", "filesizeformat", "format(1)", "slice(2)|list", "groupby('a')",
    "forceescape", "safe", "attr('a')", "default('q')", "selectattr('a')|list", "rejectattr('a')|list",
    "map(attribute='a')|list", "count", "d('e')",
]
# fmt: on


@pytest.mark.parametrize("name", FILTERS)
def test_filters_of_every_type(name):
    for value in (
        "nope",
        "(s)[s]",
        "none",
        "true",
        "1.5",
        "'ab'",
        "'2.5'",
        "[1, 2]",
        "{'a': 1}",
        "(3, 'b')",
        "range(2)",
    ):
        template = f"{{{{ {value} | {name} }}}}"
        wanted = expected(template)
        assert any(text in wanted[1] for text in BEYOND) or actual(template) == wanted, template


@pytest.mark.parametrize(
    "expression",
    ["big + big", "big * 3", "-big - big", "2 ** 63", "(-big - 1) // -1", "-(-big - 1)", "(-big - 1) | abs"],
)
def test_integers_beyond_64_bits(expression):
    kind, text = actual("{% set big = 9223372036854775807 %}{{ " + expression + " }}")
    assert kind == "error" and OVERFLOW in text
