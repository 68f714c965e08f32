"""Texts of grammars, checked by jsonschema, Python's re, lark and llguidance, with random logits and with models."""

from __future__ import annotations

import json
import random
import re

import jsonschema
import numpy as np
import pytest

from llm_runner import ArgumentError, CancelledError, Constraint, Conversation, Grammar, Vocabulary
from tests import vocabularies
from tests.llm_runner.conftest import DEMO
from tests.llm_runner.random_schemas import random_schema, with_definitions_at_root

EOS = 256
BYTES = [bytes([i]) for i in range(256)] + [b""]
PIECES = [
    b'{"',
    b'":',
    b'", "',
    b'"}',
    b"}]",
    b"]}",
    b'": "',
    b"\n  ",
    b"  ",
    b"true",
    b"null",
    b'"name',
    b"12",
    b".5",
    b"e",
    b"\xc3\xa4",
    b"\xe6\x97",
    b"\xa5\xe6",
    b"\\u00",
    b'\\"',
    b'a"',
    b'a",',
    b"abc",
]
FORMAT_CHECKER = jsonschema.Draft202012Validator.FORMAT_CHECKER


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    """Every byte, and some pieces as tokenizers have them, across the borders of characters and of JSON."""
    return Vocabulary(BYTES + PIECES, [EOS])


def token_bytes(id: int) -> bytes:
    return (BYTES + PIECES)[id]


def random_text(grammar: Grammar, rng: random.Random, limit: int = 4000, closing: int = 60) -> bytes | None:
    """A text of random tokens, which ends soon once it is long; None if it never did."""
    constraint = Constraint(grammar)
    text = b""
    for step in range(limit):
        allowed = constraint.allowed()
        if EOS in allowed and (step > closing or len(allowed) == 1 or rng.random() < 0.3):
            return text
        choices = [id for id in allowed.tolist() if id != EOS]
        if step > closing:  # brackets and quotes, digits rarely
            ends = [id for id in choices if token_bytes(id) in (b'"', b"}", b"]", b"}]", b"]}", b'"}', b"n", b"null")]
            choices = ends if ends and rng.random() < 0.8 else choices
        id = rng.choice(choices)
        constraint.accept(id)
        text += token_bytes(id)
    return None


def check_json(schema, text: bytes) -> None:
    value = json.loads(text.decode("utf-8"))
    jsonschema.Draft202012Validator(schema, format_checker=FORMAT_CHECKER).validate(value)


def test_texts_of_random_schemas_parse_and_validate(vocabulary):
    unfinished = impossible = 0
    for seed in range(1000):
        rng = random.Random(seed)
        schema = with_definitions_at_root(random_schema(rng))
        whitespace = rng.choice(["flexible", "compact", "spaced"])
        try:
            grammar = Grammar(vocabulary, json_schema=schema, whitespace=whitespace)
        except ArgumentError as error:
            assert "no text can match" in str(error), (seed, schema)
            impossible += 1
            continue
        text = random_text(grammar, rng)
        if text is None:
            unfinished += 1
            continue
        try:
            check_json(schema, text)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {json.dumps(schema)}: {text!r}") from error
    assert unfinished <= 10
    assert impossible <= 20


REGEXES = [
    "abc", "a|bc|", "(a|b)*abb", "[a-fä-ü]{2,4}x?", "[^a]{0,3}", "\\d{3}-\\d{4}", "\\w+@\\w+\\.(com|org)", "a{2}|b{3,}|c{,2}",
    "(?:foo|ba[rz]){1,3}?", "(?P<year>[12]\\d{3})-(0[1-9]|1[0-2])", "^start.*end$", "[\\]\\-\\\\]+", "\\x41\\u00e4\\n", "\\S+\\s\\S+",
    "[\\w-]+", "[^\\s\\d]+", "x*?y+?", "日本[語人]?", "😀+", "((a?b)?c)?", "{a}|a{|a{,}", "[a-]", "[]a]", "\\D\\W",
]  # fmt: skip


@pytest.mark.parametrize("regex", REGEXES)
def test_texts_of_regular_expressions_match(vocabulary, regex):
    grammar = Grammar(vocabulary, regex=regex)
    for seed in range(20):
        text = random_text(grammar, random.Random(seed), closing=20)
        if text is not None:
            assert re.fullmatch(regex, text.decode()), text


@pytest.mark.parametrize("regex", REGEXES)
def test_texts_that_match_are_accepted(vocabulary, regex):
    from hypothesis import given, settings
    from hypothesis import strategies as st

    grammar = Grammar(vocabulary, regex=regex)

    @settings(max_examples=30, deadline=None)
    @given(st.from_regex(re.compile(regex, re.ASCII), fullmatch=True))
    def check(text):
        constraint = Constraint(grammar)
        for byte in text.encode("utf-8", "surrogatepass"):
            constraint.accept(byte)
        assert constraint.may_end

    if regex not in ("\\D\\W", "\\S+\\s\\S+", "[^\\s\\d]+", "[\\w-]+"):  # narrower than Python's outside of ASCII
        check()


@pytest.mark.parametrize(
    ("regex", "message"),
    [
        ("a(?=b)", "lookahead"),
        ("(?<!a)b", "lookbehind"),
        ("(a)\\1", "references"),
        ("a\\b", "\\b is not supported"),
        ("(?i)a", "(?:...)"),
        ("a*+", "possessive"),
        ("(a", ") is missing"),
        ("a)", "not expected"),
        ("[a", "] is missing"),
        ("*a", "nothing to repeat"),
        ("a**", "quantifier of a quantifier"),
        ("a^b", "anchor"),
        ("a{3,2}", "at least 3 and at most 2"),
        ("[b-a]", "range"),
        ("\\p{L}", "\\p is not supported"),
        ("(" * 300 + ")" * 300, "nested deeper"),
        ("(((a{1000}){1000}){1000})", "too large"),
        ("(a|b)*a(a|b){30}", "too large"),
        ("[]", "] is missing"),
    ],
)
def test_regular_expressions_that_are_refused(vocabulary, regex, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        Grammar(vocabulary, regex=regex)


LARK_JSON = r"""
?start: value
?value: object | array | ESCAPED_STRING | SIGNED_NUMBER | "true" | "false" | "null"
array  : "[" [value ("," value)*] "]"
object : "{" [pair ("," pair)*] "}"
pair   : ESCAPED_STRING ":" value
%import common.ESCAPED_STRING
%import common.SIGNED_NUMBER
%import common.WS
%ignore WS
"""
LARK_LEFT = """
start: sum
sum: sum "+" product | sum "-" product | product
product: product "*" atom | atom
atom: NUMBER -> number | "(" sum ")" | NAME ["(" sum ")"]
NAME: /[a-z]+/ "_"~0..2
NUMBER: "0" | "1".."9" /[0-9]/*
// a comment
%ignore " "
"""
LARK_INDIRECT = """
start: a
a: b "x" | "y"
b: c "z" | c
c: a "w" | opt "v" a | "u"
opt: "o"?
"""


@pytest.mark.parametrize("grammar", [LARK_JSON, LARK_LEFT, LARK_INDIRECT])
def test_texts_of_lark_grammars_parse(vocabulary, grammar):
    lark = pytest.importorskip("lark")
    parser = lark.Lark(grammar, parser="earley", lexer="dynamic_complete")
    compiled = Grammar(vocabulary, grammar=grammar)
    finished = 0
    for seed in range(40):
        text = random_text(compiled, random.Random(seed), limit=40, closing=8)
        if text is not None and text.isascii():
            finished += 1
            parser.parse(text.decode())
    assert finished >= 5


GBNF_ARITHMETIC = r"""
# as in llama.cpp's examples
root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t]*
"""


def test_texts_of_gbnf_grammars_parse(vocabulary):
    lark = pytest.importorskip("lark")
    parser = lark.Lark(
        r"""
        start: (expr "=" ws term "\n")+
        expr: term (/[-+*\/]/ term)*
        term: ident | num | "(" ws expr ")" ws
        ident: /[a-z]/ /[a-z0-9_]/* ws
        num: /[0-9]/+ ws
        ws: /[ \t]/*
        """,
        parser="earley",
        lexer="dynamic_complete",
    )
    grammar = Grammar(vocabulary, grammar=GBNF_ARITHMETIC)
    finished = 0
    for seed in range(40):
        text = random_text(grammar, random.Random(seed), limit=40, closing=8)
        if text is not None:
            finished += 1
            parser.parse(text.decode())
    assert finished >= 5


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        ('rot ::= "a"', "no rule named root"),
        ("root ::= b", "line 1, column 10: there is no rule named b"),
        ('root ::= "a', "a text is not closed"),
        ("root ::= [a", "not closed"),
        ('root ::= ("a"', ") is missing"),
        ('root ::= "a"\nroot ::= "b"', "line 2, column 1: the rule root is defined twice"),
        ("root ::= root", "no text can match"),
        ('root ::= "a" root', "no text can match"),
        ('root ::= "a"{3,1}', "at least 3 and at most 1"),
        ("root ::= <think>", "tokens in grammars"),
        ('root ::= "\\q"', "after a backslash"),
        ("root ::= " + "(" * 500, "nested deeper"),
        ("root = 1 ::=", "::= must follow"),
        ("start: a", "there is no rule named a"),
        ('x: "a"', "no rule named start"),
        ('start: A\nA: b\nb: "x"', "a terminal cannot be made of the rule b"),
        ("start: x{1}", "templates"),
        ("%declare A\nstart: A", "%import common.NAME and %ignore"),
        ("%import python.NAME\nstart: NAME", "only terminals of common"),
        ("start: /a/x", "flags"),
        ("start: /a(?=b)/", "lookahead"),
    ],
)
def test_grammars_that_are_refused(vocabulary, grammar, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        Grammar(vocabulary, grammar=grammar)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "strnig"}, '#/type = "strnig": must be null, boolean'),
        ({"properties": {"a/b": {"not": {}}}}, "#/properties/a~1b/not: this keyword is not supported"),
        ({"type": "array", "uniqueItems": True}, "#/uniqueItems = true"),
        ({"type": "array", "items": [{}]}, "#/items: must be a schema"),
        ({"$ref": "#/$defs/x"}, '#/$ref = "#/$defs/x": there is no such schema'),
        ({"$ref": "other.json"}, "only references into the same document"),
        (
            {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
            '#/$defs/a/$ref = "#/$defs/a": leads back to #/$defs/a',
        ),
        ({"$ref": "#"}, '#/$ref = "#": leads back to # without a value in between'),
        ({"allOf": [{"$ref": "#"}]}, '#/allOf/0/$ref = "#": leads back to #'),
        ({"anyOf": [{"$ref": "#"}]}, "#/anyOf: every branch is false or leads back to the schema itself"),
        (
            {"oneOf": [{"$ref": "#"}, {"type": "integer"}]},
            "#/oneOf: a value may be accepted by branch 0 and by branch 1",
        ),
        (
            {"oneOf": [{"type": "number"}, {"type": "integer"}]},
            "#/oneOf: a value may be accepted by branch 0 and by branch 1",
        ),
        ({"type": "string", "format": "iri"}, '#/format = "iri": must be one of date, '),
        ({"type": "string", "pattern": "(?=a)"}, "#/pattern"),
        ({"type": "string", "minLength": -1}, "#/minLength = -1: must be a whole number"),
        ({"type": "number", "multipleOf": 0.01}, "#/multipleOf = 0.01"),
        ({"if": {}}, "#/if: this keyword"),
        ({"type": "object", "required": ["a"], "properties": {"a": False}}, "no text can match"),
        ({"type": "string", "maxLength": 10**8}, "too large"),
        ("{", "no JSON"),
        ("[1]", "# must be an object"),
        ("[" * 5000, "JSON"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "nested deeper"),
        ({"type": "object", "minProperties": 3}, "#/minProperties = 3"),
        ({"allOf": [{"anyOf": [{"type": "null"}] * 9}] * 9}, "#: the grammar is too large: compiling it takes"),
        ({"items": {"type": "string", "maxLength": 10**6}}, "#/items: the grammar is too large: compiling it takes"),
        (
            {"properties": {"a": {"type": "null", "default": object()}}},
            "json_schema: must be a schema that JSON can hold",
        ),
    ],
)
def test_schemas_that_are_refused(vocabulary, schema, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        Grammar(vocabulary, json_schema=schema)


@pytest.mark.parametrize("depth", [190, 1990, 100_000])
def test_deep_schemas_compile_or_are_refused(vocabulary, depth):
    for keyword, wrap in {
        "items": lambda part: part,
        "anyOf": lambda part: [part],
        "allOf": lambda part: [part],
    }.items():
        schema: dict = {"type": "null"}
        for _ in range(depth if keyword == "items" else depth // 2):
            schema = {keyword: wrap(schema)}
        if depth < 200:
            Grammar(vocabulary, json_schema=schema)
        else:
            with pytest.raises(ArgumentError, match="json_schema: must be|nested deeper than 200"):
                Grammar(vocabulary, json_schema=schema)


def accepts(grammar: Grammar, text: str) -> bool:
    constraint = Constraint(grammar)
    try:
        for byte in text.encode():
            constraint.accept(byte)
    except ArgumentError:
        return False
    return constraint.may_end


@pytest.mark.parametrize(
    ("schema", "accepted", "refused"),
    [
        ({"type": "integer", "minimum": -5, "exclusiveMaximum": 12}, ["-5", "0", "11", "9"], ["-6", "12", "100", "01", "1.0"]),
        ({"type": "number", "exclusiveMinimum": 0.25, "maximum": 1.5}, ["0.26", "1", "1.5", "1.50", "0.2500001"], ["0.25", "1.51", "2", "0"]),
        ({"type": "number", "minimum": -1.5, "maximum": -0.5}, ["-1.5", "-1", "-0.5", "-0.75"], ["-1.6", "-0.4", "1", "0"]),
        ({"type": "integer", "multipleOf": 7}, ["0", "7", "-14", "700"], ["1", "8"]),
        ({"type": "string", "maxLength": 2}, ['""', '"ü日"', '"\\n\\""'], ['"abc"', '"']),
        ({"type": "string", "pattern": "b+"}, ['"abba"', '"b"'], ['"a"', '""']),
        ({"type": "string", "format": "date"}, ['"2024-02-29"', '"1999-12-31"'], ['"2023-02-29"', '"2024-13-01"', '"0000-01-01"']),
        ({"enum": ["a", 1, None], "type": ["string", "null"]}, ['"a"', "null"], ["1"]),
        ({"properties": {"a": True}, "required": ["b"]}, ['{"b":1}', '{"a":[],"b":{"x":null}}'], ["{}", '{"b":1,"c":2}', '{"b":1,"a":2}']),
        ({"properties": {"a": {"type": "null"}}, "additionalProperties": True}, ['{"x":"y"}', '{"a":null, "b":1}'], ['{"a":1}', '{"\\u0061":1}']),
        ({"patternProperties": {"^a": {}, "b": True, "c$": {}}, "required": ["ab"]}, ['{"ab":1,"b":2,"xc":3,"bc":4}'], ['{"ab":1,"x":2}', '{"b":1}', '{"ab":1,"ab":2}']),
        ({"patternProperties": {"^a": {"const": 1}, "b": {"const": 2}, "^x": False}, "additionalProperties": {"const": 3}}, ['{"a":1,"b":2,"cb":2,"c":3,"ä":3,"":3}'], ['{"a":2}', '{"b":1}', '{"c":1}', '{"ab":1}', '{"ab":2}', '{"x":3}', '{"xb":2}']),
        ({"patternProperties": {"a": {"const": 1}, "b": {"const": 2}}}, ['{"a":1,"xaax":1,"b":2}', "{}"], ['{"ab":1}', '{"ba":2}', '{"c":1}', '{"a":2}']),
        ({"patternProperties": {"^a|z$": {"const": 1}}, "properties": {"ab": {"const": 5}}}, [], ['{"ab":1}', '{"ab":5,"ab":1}', '{"b":1}']),
        ({"patternProperties": {"^a": {}}, "propertyNames": {"maxLength": 2}, "additionalProperties": {"type": "null"}}, ['{"a":1,"ab":2,"b":null}'], ['{"abc":1}', '{"bcd":null}', '{"b":1}']),
        ({"allOf": [{"enum": [1, 2.5, "a", [1], {"k": 1}]}, {"enum": [1.0, [1], {"k": 1.0}, "b"]}]}, ["1.0", "[1]", '{"k":1.0}'], ["2.5", '"a"', '"b"', "[2]"]),
        ({"oneOf": [{"const": "a"}, {"type": "object", "properties": {"k": {"enum": [1, 2]}}, "required": ["k"]}, {"type": "object", "properties": {"k": {"const": 3}}, "required": ["k"]}]}, ['"a"', '{"k":2}', '{"k":3}'], ['{"k":4}', "1"]),
        (True, ["1", '{"a":[true,{}]}', '"\\ud83d\\ude00"', "-1.5e+10"], ["", "nul", '"\\ud83d"', "1.", '"\n"']),
        ({"type": "object"}, ['{\n  "a": 1,\n  "b": [1, 2]\n}', '{"a": 1, "b": [1, 2]}', "{}"], ['{"a" :1}', '{"a":1,}', "[]"]),
    ],
)  # fmt: skip
def test_what_schemas_accept(vocabulary, schema, accepted, refused):
    grammar = Grammar(vocabulary, json_schema=schema)
    assert [text for text in accepted if not accepts(grammar, text)] == []
    assert [text for text in refused if accepts(grammar, text)] == []


REFERENCE_VALUES = ["null", "true", "7", '"x"', "[]", "{}"]
REFERENCE_TYPES = ["null", "boolean", "integer", "string", "array", "object"]


def random_references(rng: random.Random) -> dict:
    """Definitions that refer to each other, and to themselves, with nothing but choices in between."""

    def part(depth: int) -> dict:
        kind = rng.choice(["$ref", "$ref", "type", "anyOf", "allOf"]) if depth else rng.choice(["$ref", "type"])
        if kind == "$ref":
            return {"$ref": rng.choice(["#", "#/$defs/a", "#/$defs/b", "#/$defs/c"])}
        if kind == "type":
            return {"type": rng.sample(REFERENCE_TYPES, rng.randrange(1, 4))}
        return {kind: [part(depth - 1) for _ in range(rng.randrange(1, 4))]}

    return part(2) | {"$defs": {name: part(2) for name in "abc"}}


def smallest_meaning(document: dict) -> dict[str, set[str]]:
    """What the definitions accept: the least sets of values that agree with them, found by iteration from nothing."""
    found: dict[str, set[str]] = {"#": set()} | {f"#/$defs/{name}": set() for name in "abc"}

    def values(part: dict) -> set[str]:
        if "$ref" in part:
            return found[part["$ref"]]
        if "type" in part:
            return {REFERENCE_VALUES[REFERENCE_TYPES.index(name)] for name in part["type"]}
        parts = [values(each) for each in part.get("anyOf") or part["allOf"]]
        return set.union(*parts) if "anyOf" in part else set.intersection(*parts)

    while True:
        now = {"#": values(document)} | {f"#/$defs/{name}": values(part) for name, part in document["$defs"].items()}
        if now == found:
            return found
        found = now


def test_choices_that_lead_back_to_themselves_add_nothing(vocabulary):
    compiled = cyclic = refused = 0
    for seed in range(600):
        schema = random_references(random.Random(seed))
        meaning = smallest_meaning(schema)
        try:
            grammar = Grammar(vocabulary, json_schema=schema)
        except ArgumentError as error:
            assert re.search("leads back to|no text can match", str(error)), schema
            assert "leads back to" not in str(error) or set() in meaning.values(), schema
            assert "no text can match" not in str(error) or not meaning["#"], schema
            refused += 1
            continue
        accepted = {value for value in REFERENCE_VALUES if accepts(grammar, value)}
        assert accepted == meaning["#"], schema
        compiled += 1
        try:
            validator = jsonschema.Draft202012Validator(schema)
            assert accepted == {value for value in REFERENCE_VALUES if validator.is_valid(json.loads(value))}, schema
        except RecursionError:
            cyclic += 1
    assert compiled > 250
    assert cyclic > 50
    assert refused > 20


def test_choices_of_references_may_still_go_round_by_way_of_values(vocabulary):
    schema = {"anyOf": [{"$ref": "#"}, {"type": "null"}, {"type": "array", "items": {"$ref": "#"}, "minItems": 1}]}
    grammar = Grammar(vocabulary, json_schema=schema)
    assert all(accepts(grammar, text) for text in ("null", "[null]", "[[null],null]"))
    assert not any(accepts(grammar, text) for text in ("[]", "1", '"a"', "[1]"))


def test_disjointness_of_many_branches_and_references_is_told_soon(vocabulary):
    kinds = [{"type": "object", "properties": {"kind": {"const": i}}, "required": ["kind"]} for i in range(250)]
    accepts(Grammar(vocabulary, json_schema={"oneOf": kinds}), '{"kind":249}')
    nested: dict = {"type": "null"}
    for _ in range(40):
        nested = {"oneOf": [nested, {"const": "a"}]}
    names = [f"p{i}" for i in range(40)]
    deep = {"type": "object", "properties": {name: {"$ref": "#/$defs/deep"} for name in names}, "required": names}
    for schema in (nested, {"$defs": {"deep": deep}, "oneOf": [{"$ref": "#/$defs/deep"}, {"$ref": "#/$defs/deep"}]}):
        with pytest.raises(ArgumentError, match="#/oneOf.*: a value may be accepted by branch"):
            Grammar(vocabulary, json_schema=schema)


def test_what_stalled_a_compiler_compiles(vocabulary):
    names = [f"name_{i}" for i in range(1000)]
    patterns = {f"^x{i}$": {"const": i} for i in range(1000)}
    for schema, accepted, refused in (
        ({"enum": list(range(80_000))}, ["0", "79999"], ["80000", "-1", "07"]),
        ({"anyOf": [{"const": name} for name in names]}, ['"name_999"'], ['"name_1000"', '"name_"']),
        ({"oneOf": [{"const": name} for name in names]}, ['"name_7"'], ['"name_"']),
        ({"patternProperties": patterns}, ['{"x7":7,"x999":999}'], ['{"x7":8}', '{"x1000":1}', '{"y":1}']),
        ({"properties": dict.fromkeys(names, True)}, ['{"name_3":1,"name_900":2}', "{}"], ['{"name_9":1,"name_3":2}']),
        (
            {"required": names[:2], "properties": dict.fromkeys(names, True)},
            ['{"name_0":1,"name_1":2,"name_9":3}'],
            ["{}"],
        ),
    ):
        grammar = Grammar(vocabulary, json_schema=schema)
        assert [text for text in accepted if not accepts(grammar, text)] == []
        assert [text for text in refused if accepts(grammar, text)] == []
    rules = [f'r{i} ::= "a" [a-z] "{i}"' for i in range(700)]
    alternatives = "root ::= " + " | ".join(f"r{i}" for i in range(700)) + "\n" + "\n".join(rules)
    constraint = Constraint(Grammar(vocabulary, grammar=alternatives))
    for byte in b"ab69":
        assert byte in constraint.allowed()
        constraint.accept(byte)


def test_compiling_can_be_cancelled(vocabulary):
    asked = 0

    def after_two() -> bool:
        nonlocal asked
        asked += 1
        return asked > 2

    regex = "(a|b)*a(a|b){15}"
    with pytest.raises(CancelledError, match="cancelled"):
        Grammar(vocabulary, regex=regex, is_cancelled=after_two)
    assert asked == 3
    with pytest.raises(ZeroDivisionError):
        Grammar(vocabulary, regex=regex, is_cancelled=lambda: 1 / 0)
    assert accepts(Grammar(vocabulary, regex=regex, is_cancelled=lambda: False), "a" * 16)


def test_every_way_in_which_python_writes_json_is_accepted(vocabulary):
    value = {"name": 'Ä"\\\n', "list": [1, -2.5, 1e20, None, True], "nested": {"empty": {}, "none": []}}
    for schema in ({"type": "object"}, {"properties": {"name": {}, "list": {}, "nested": {}}}):
        grammar = Grammar(vocabulary, json_schema=schema)
        for indent in (None, 0, 2, 4):
            assert accepts(grammar, json.dumps(value, indent=indent))
            assert accepts(grammar, json.dumps(value, indent=indent, ensure_ascii=False))
        assert accepts(grammar, json.dumps(value, separators=(",", ":")))


def allowed_by_trying(grammar: Grammar, prefix: list[int]) -> set[int]:
    """The ids that can come next, byte by byte with a vocabulary of bytes, which is the oracle of all others."""
    start = Constraint(grammar)
    for byte in b"".join(token_bytes(id) for id in prefix):
        start.accept(byte)
    found = {EOS} if start.may_end else set()
    for id, text in enumerate(BYTES + PIECES):
        constraint = start.copy()
        try:
            for byte in text:
                constraint.accept(byte)
        except ArgumentError:
            continue
        found |= {id} if text else set()
    return found


@pytest.mark.parametrize("seed", range(12))
def test_masks_are_what_trying_each_token_gives(vocabulary, seed):
    rng = random.Random(seed)
    schema = with_definitions_at_root(random_schema(rng))
    sources = [
        {"json_schema": schema},
        {"regex": rng.choice(REGEXES)},
        {"grammar": rng.choice([LARK_JSON, LARK_LEFT, LARK_INDIRECT, GBNF_ARITHMETIC])},
    ]
    for source in sources:
        grammar = Grammar(vocabulary, **source)
        constraint = Constraint(grammar)
        prefix: list[int] = []
        for _ in range(12):
            allowed = set(constraint.allowed().tolist())
            assert allowed == allowed_by_trying(grammar, prefix), (source, prefix)
            forced = constraint.forced_token
            assert forced is None or forced in allowed
            choices = sorted(allowed - {EOS})
            if not choices:
                break
            prefix.append(rng.choice(choices))
            constraint.accept(prefix[-1])


def texts_of_length(regex: str, alphabet: str, length: int) -> set[str]:
    from itertools import product

    texts = ("".join(letters) for size in range(length + 1) for letters in product(alphabet, repeat=size))
    return {text for text in texts if re.fullmatch(regex, text)}


@pytest.mark.parametrize("seed", range(30))
def test_masks_are_the_prefixes_of_matches(seed):
    """Viable means that a match begins so: Python's re says which texts match."""
    rng = random.Random(seed)

    def expression(depth: int) -> str:
        kind = rng.randrange(6) if depth else 0
        if kind < 2:
            return rng.choice(["a", "b", "ä", "[aä]", "[^b]"])
        if kind == 2:
            return f"(?:{expression(depth - 1)}|{expression(depth - 1)})"
        if kind == 3:
            return expression(depth - 1) + expression(depth - 1)
        return f"(?:{expression(depth - 1)})" + rng.choice(["?", "{1,2}", "{2}"])

    regex = expression(3)
    alphabet = "abä"
    length = 8
    matches = {text.encode() for text in texts_of_length(regex, alphabet, length)}
    if len(max(matches, key=len, default=b"")) >= 8:
        pytest.skip("longer matches may be missing")
    tokens = [
        b"a",
        b"b",
        b"\xc3",
        b"\xa4",
        b"\xc3\xa4",
        b"ab",
        b"a\xc3",
        b"\xa4a",
        b"\xa4b",
        b"ba\xc3\xa4",
        b"aa",
        b"bb",
        b"",
    ]
    grammar = Grammar(Vocabulary(tokens, [12]), regex=regex)
    waiting = [(Constraint(grammar), b"")]
    seen = set()
    while waiting:
        constraint, text = waiting.pop()
        assert constraint.may_end == (text in matches)
        expected = {i for i, token in enumerate(tokens) if token and any(m.startswith(text + token) for m in matches)}
        # [^b] has more characters than the alphabet, but of those tokens none more.
        assert set(constraint.allowed().tolist()) - {12} == expected, (regex, text)
        for id in expected:
            after = text + tokens[id]
            if after not in seen:
                seen.add(after)
                copy = constraint.copy()
                copy.accept(id)
                waiting.append((copy, after))


LLGUIDANCE_SOURCES = [
    {"regex": r} for r in ["[a-z]+ [0-9]{2,4}", "(foo|bar)*baz", "[^x]*x", '"[^"]*": (true|false)', "(ä|日本)+", "def [a-z_]+\\((self, )?[a-z]*\\):\n"]
] + [
    {"json_schema": s}
    for s in [
        {"type": "object", "properties": {"name": {"enum": ["red", "green", "ä"]}, "ok": {"type": "boolean"}}, "required": ["name", "ok"], "additionalProperties": False},
        {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "null"}, "c": {"const": 3}}, "required": ["b"], "additionalProperties": False},
        {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 4},
        {"$defs": {"t": {"type": "object", "properties": {"l": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]}}, "required": ["l"], "additionalProperties": False}}, "$ref": "#/$defs/t"},
        {"type": "string", "pattern": "^[a-z]{2,8}$"},
    ]
]  # fmt: skip


@pytest.mark.parametrize("source", LLGUIDANCE_SOURCES, ids=str)
def test_masks_are_those_of_llguidance(demo, source):
    llguidance = pytest.importorskip("llguidance", reason="llguidance is not installed for this platform")
    tokenizer = llguidance.LLTokenizer((DEMO / "tokenizer.json").read_text())
    if "regex" in source:
        theirs = llguidance.LLMatcher.grammar_from_regex(source["regex"])
    else:
        compact = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
        theirs = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(source["json_schema"]), overrides=compact)
    grammar = Grammar(demo, whitespace="compact", **source)
    ends = set(demo.generation_config["eos_token_id"])
    for seed in range(6):
        rng = random.Random(seed)
        constraint, matcher = Constraint(grammar), llguidance.LLMatcher(tokenizer, theirs)
        assert not matcher.is_error(), matcher.get_error()
        for _ in range(25):
            bits = np.frombuffer(matcher.compute_bitmask(), np.uint8)
            expected = set(np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist()) - ends
            allowed = set(constraint.allowed().tolist())
            assert bool(allowed & ends) == matcher.is_accepting()
            allowed -= ends
            # Where the text is forced, llguidance allows only the token that it would force.
            assert allowed == expected or (len(expected) == 1 and expected <= allowed)
            if not allowed:
                break
            id = rng.choice(sorted(allowed))
            constraint.accept(id)
            matcher.consume_token(id)


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
}


@pytest.fixture(scope="session")
def random_weights(demo_path, tmp_path_factory):
    """The demo model with random numbers for weights."""
    from llm_export.program.writer import write_program
    from llm_runner import Model
    from tests.llm_export.program_reader import read_program

    file = read_program(demo_path)
    index = {spec.name: i for i, spec in enumerate(file.weights)}
    rng = np.random.default_rng(0)

    def noise(spec) -> list[bytes]:
        data = file.weight_bytes(index[spec.name])
        return [rng.normal(0, 0.2, len(data) // 4).astype(np.float32).tobytes()] if len(data) % 4 == 0 else [data]

    path = tmp_path_factory.mktemp("random") / "random.mote"
    write_program(path, file.planned, file.metadata, noise)
    return Model.load(path)


def test_a_model_of_random_weights_at_temperature_2_writes_valid_json(random_weights):
    finished = 0
    for seed in range(40):
        schema = with_definitions_at_root(random_schema(random.Random(seed), depth=2))
        try:
            generation = random_weights.generate(
                "x", json_schema=schema, temperature=2.0, top_k=0, seed=seed, max_new_tokens=400
            )
        except ArgumentError as error:
            assert "no text can match" in str(error)
            continue
        text = generation.text()
        if generation.finish_reason == "eos":
            finished += 1
            check_json(schema, text.encode())
    assert finished >= 25


@pytest.mark.parametrize(
    "options",
    [{}, {"temperature": 2.0, "top_k": 0}, {"temperature": 1.5, "top_k": 7, "top_p": 0.9, "repetition_penalty": 1.3}],
)
def test_forced_tokens_change_no_text(demo, options):
    grammar = Grammar(demo, json_schema=PERSON, whitespace="compact")
    for seed in range(4):
        session, other = demo.session(), demo.session()
        quick = session.generate(
            "def f():\n", grammar=grammar, seed=seed, max_new_tokens=200, **{"do_sample": bool(options), **options}
        )
        text = quick.text()
        # Log-probabilities need the model for every token.
        each = other.generate(
            "def f():\n",
            grammar=grammar,
            seed=seed,
            max_new_tokens=200,
            logprobs=True,
            **{"do_sample": bool(options), **options},
        )
        assert each.text() == text
        assert quick.token_ids == each.token_ids
        assert quick.finish_reason == each.finish_reason
        assert session.tokens == other.tokens
        assert quick.statistics["forced_tokens"] > 5
        assert each.statistics["forced_tokens"] == 0
        if quick.finish_reason == "eos":
            check_json(PERSON, text.encode())


@pytest.mark.parametrize("end", ["cancel", "close"])
@pytest.mark.parametrize("options", [{}, {"speculative": "lookup"}, {"prefill_chunk": 2}])
def test_a_generation_may_be_left_between_any_two_tokens(demo, end, options):
    grammar = Grammar(demo, json_schema=PERSON, whitespace="compact")
    chunk = {"prefill_chunk": options["prefill_chunk"]} if "prefill_chunk" in options else {}
    asked = {name: value for name, value in options.items() if name == "speculative"} | {"do_sample": False}
    prompt = demo.tokenize("def f():\n")
    whole = demo.session().generate(prompt, grammar=grammar, max_new_tokens=60, **asked)
    text = whole.text()
    assert whole.statistics["forced_tokens"] > 5
    with demo.session(**chunk) as session, demo.session() as fresh:
        for count in range(len(whole.token_ids)):
            session.reset()
            generation = session.generate(prompt, grammar=grammar, max_new_tokens=60, **asked)
            pieces = [generation.next_piece() for _ in range(count)]
            if end == "close":
                generation.close()
            else:
                generation.cancel()
                last = generation.next_piece()
                assert (last.finish_reason, last.token_id) == ("cancelled", None)
                pieces.append(last)
            given = generation.token_ids
            assert given == whole.token_ids[:count]
            if end == "cancel":
                assert text.startswith("".join(piece.text for piece in pieces))
            assert session.tokens == (prompt + given[:-1] if given else [])
            if given and count % 5 == 0:
                fresh.reset()
                np.testing.assert_array_equal(session.decode(given[-1]), fresh.prefill(prompt + given))


def test_limits_cut_a_text_short_and_the_session_goes_on(demo):
    grammar = Grammar(demo, json_schema=PERSON, whitespace="compact")
    for limit in range(1, 12):
        with demo.session() as session:
            generation = session.generate("x", grammar=grammar, max_new_tokens=limit)
            generation.text()
            assert (generation.finish_reason, len(generation.token_ids)) == ("length", limit)
            assert session.tokens == demo.tokenize("x") + generation.token_ids[:-1]
    length = len(demo.tokenize("x")) + 7
    generation = demo.generate("x", grammar=grammar, context_length=length)
    generation.text()
    assert (generation.finish_reason, len(generation.token_ids)) == ("length", 8)


def test_bans_do_not_break_a_grammar(demo):
    every = list(range(demo.info["vocab_size"]))
    for options in (
        {},
        {"temperature": 1.0, "top_k": 3},
        {"temperature": 1.0, "top_k": 0, "xtc_probability": 1.0, "xtc_threshold": 0.0},
    ):
        generation = demo.generate("x", regex="(ab|c){5}", suppress_tokens=every, max_new_tokens=30, **options)
        assert re.fullmatch("(ab|c){5}", generation.text())


def test_the_grammar_of_a_conversation_can_be_cancelled(demo):
    schema = {"type": "string", "pattern": "^(a|b)*a(a|b){14}$"}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    messages = [{"role": "user", "content": "Hello"}]
    with pytest.raises(CancelledError):
        Conversation(demo, messages, response_format=wanted, is_cancelled=lambda: True)
    assert Conversation(demo, messages, response_format=wanted, is_cancelled=lambda: False).ids
    # The model keeps it: nobody is asked again.
    assert Conversation(demo, messages, response_format=wanted, is_cancelled=lambda: True).ids
    Grammar(demo, json_schema=schema, is_cancelled=lambda: False)
    Grammar(demo, json_schema=schema, is_cancelled=lambda: True)


def test_options_that_do_not_go_together(demo):
    with pytest.raises(ArgumentError, match="only one of them can be given"):
        demo.generate("x", regex="a", json_schema={})
    with pytest.raises(ArgumentError, match="compiled for another vocabulary"):
        demo.generate("x", grammar=Grammar(Vocabulary([b"a"]), regex="a"))
    with pytest.raises(ArgumentError, match="grammar_syntax = .* must be one of auto, gbnf, lark"):
        demo.generate("x", grammar="start: x", grammar_syntax="ebnf")
    assert demo.generate("x", regex="a{3}", ignore_eos=True).text() == "aaa"
    assert demo.generate("x", grammar='root ::= "yes" | "no"').text() in ("yes", "no")
    assert demo.generate("x", grammar='start: "yes"').text() == "yes"


@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "falcon", "phi-3"])
def test_real_tokenizers_write_what_grammars_say(with_tokenizer, name):
    model = with_tokenizer(vocabularies.tokenizer_json(name))
    schema = {
        "type": "object",
        "properties": {"näme": {"type": "string", "maxLength": 8}, "n": {"type": "number"}},
        "required": ["näme", "n"],
    }
    for seed in range(5):
        generation = model.generate("x", json_schema=schema, temperature=2.0, top_k=0, seed=seed, max_new_tokens=120)
        text = generation.text()
        if generation.finish_reason == "eos":
            check_json(schema, text.encode())
        text = model.generate(
            "x", regex="(ab|日|😀){4} \\S{3}", temperature=2.0, top_k=0, seed=seed, max_new_tokens=80
        ).text()
        assert re.fullmatch("(ab|日|😀){4} \\S{3}", text)
