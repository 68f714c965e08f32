"""The package itself: files, errors, ill-formed text, batches, real vocabularies."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_tokenizer import ArgumentError, FileError, InvalidTokenizerError, Tokenizer, compile_tokenizer
from tests import vocabularies
from tests.llm_tokenizer import corpus, oracle, trained
from tests.llm_tokenizer.trained import sequence, split

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "falcon", "phi-3"])
def test_real_vocabularies(name):
    content = vocabularies.tokenizer_json(name).decode()
    oracle.assert_same_on_all_texts(*oracle.both(content))


@pytest.fixture(scope="module")
def pair():
    return oracle.both(trained.byte_level())


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_any_text(text):
    oracle.assert_same(*PAIR(), text)


def PAIR(made=[]):  # noqa: B006, N802 - hypothesis takes no fixtures of pytest
    if not made:
        made.append(oracle.both(trained.byte_level("o200k")))
    return made[0]


def assert_replaced_as_python_does(ours: Tokenizer, strings: list[bytes]) -> None:
    encoded = [ours._core.encode_bytes(data, False, False, 0)[0] for data in strings]
    decoded = ours.decode_batch(encoded, skip_special_tokens=False)
    texts = [data.decode(errors="replace") for data in strings]
    wrong = next((i for i, text in enumerate(texts) if decoded[i] != text), None)
    assert wrong is None, f"{strings[wrong]!r} is read as {decoded[wrong]!r}, by Python as {texts[wrong]!r}"
    assert encoded[::8] == [ours.encode_ids(text, False, False) for text in texts[::8]]


def test_every_string_of_two_bytes_is_read_as_python_replaces_it(pair):
    singles = [bytes([a]) for a in range(256)]
    assert_replaced_as_python_does(pair[0], singles + [a + b for a in singles for b in singles])


@pytest.mark.parametrize("seed", range(8))
def test_ill_formed_text_is_read_as_python_replaces_it(pair, seed):
    """A million random strings in all, of bytes that start, continue, overstretch and cut short what is nearly UTF-8."""
    rng = random.Random(seed)
    likely = [
        0xE0,
        0xE2,
        0xED,
        0xEF,
        0xF0,
        0xF1,
        0xF4,
        0xF5,
        0xC1,
        0xC2,
        0x80,
        0x82,
        0x8F,
        0x90,
        0x9F,
        0xA0,
        0xBF,
        0x41,
    ]
    population = [*range(256), *likely * 20]
    for _ in range(5):
        data = bytes(rng.choices(population, k=150_000))
        ends = list(itertools.accumulate(rng.choices(range(1, 12), k=25_000)))
        strings = [data[begin:end] for begin, end in itertools.pairwise([0, *(end % 150_000 for end in ends)])]
        assert_replaced_as_python_does(pair[0], strings)


def test_files_and_folders(tmp_path):
    (tmp_path / "tokenizer.json").write_text(trained.byte_level())
    ids = Tokenizer.from_file(tmp_path / "tokenizer.json").encode("Hello").ids
    assert Tokenizer.from_file(tmp_path).encode("Hello").ids == ids
    compiled = compile_tokenizer((tmp_path / "tokenizer.json").read_bytes())
    (tmp_path / "compiled").write_bytes(compiled)
    assert Tokenizer.from_file(tmp_path / "compiled").encode("Hello").ids == ids
    with pytest.raises(FileError, match="nowhere"):
        Tokenizer.from_file(tmp_path / "nowhere")
    with pytest.raises(FileError, match="tokenizer.json"):
        Tokenizer.from_file(tmp_path.parent / "..")


def test_interface_of_tokenizers(pair):
    ours, theirs = pair
    texts = ["Hello, world", "", "zqz <s>x</s>"]
    assert [e.ids for e in ours.encode_batch(texts)] == [e.ids for e in theirs.encode_batch(texts)]
    ids = [e.ids for e in theirs.encode_batch(texts)]
    assert ours.decode_batch(ids) == theirs.decode_batch(ids)
    for id in range(-1, ours.num_ids + 2):
        assert ours.id_to_token(id) == (theirs.id_to_token(id) if id >= 0 else None)
    for token, id in theirs.get_vocab().items():
        assert ours.token_to_id(token) == id
    assert ours.token_to_id("no such token") is None
    assert ours.is_special(theirs.token_to_id("<s>")) and not ours.is_special(5)
    for bad in (b"x", 3, None):
        with pytest.raises(ArgumentError):
            ours.encode(bad)
    for bad in ([-1], [2**31], ["a"], [1.5]):
        with pytest.raises(ArgumentError):
            ours.decode(bad)


def test_batches_are_the_same_for_any_number_of_threads(pair):
    ours, _ = pair
    batch = next(iter(corpus.documents(0.5, 7, for_code_points=0)))
    expected = [ours.encode(text) for text in batch]
    ids = [encoding.ids for encoding in expected]
    texts = [ours.decode(sequence) for sequence in ids]
    for num_threads in (0, 1, 2, 7, 256):
        assert ours.encode_batch(batch, num_threads=num_threads) == expected
        assert ours.decode_batch(ids, num_threads=num_threads) == texts
    assert ours.encode_batch([]) == [] and ours.decode_batch([]) == []
    for num_threads in (-1, 257):
        with pytest.raises(ArgumentError, match=f"num_threads = {num_threads}: must be 0 to 256"):
            ours.encode_batch(["a"], num_threads=num_threads)
        with pytest.raises(ArgumentError, match=f"num_threads = {num_threads}: must be 0 to 256"):
            ours.decode_batch([[1]], num_threads=num_threads)
    for bad in (["a", 3], [("a",)], [("a", None)], [("a", "b", "c")], [b"a"]):
        with pytest.raises(ArgumentError):
            ours.encode_batch(bad)


def test_a_batch_reports_the_error_of_its_first_text_that_has_one():
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "?"}
    ours = Tokenizer.from_str(crafted(model=model, pre_tokenizer=None, added_tokens=[]))
    with pytest.raises(ArgumentError):
        ours.encode_batch(["a"] * 50 + ["b"] + ["a"] * 50, num_threads=4)
    assert [encoding.ids for encoding in ours.encode_batch(["a", "a"])] == [[0], [0]]


def test_special_tokens_of_users_stay_text(pair):
    ours, _ = pair
    special = [ours.token_to_id(token) for token in ("<s>", "</s>", "<|im_start|>", "<|im_end|>")]
    text = "<s>a</s><|im_start|> <|im_end|>"
    assert set(special) <= set(ours.encode(text).ids)
    found = ours.encode(text, parse_special_tokens=False).ids
    assert not set(special) & set(found)
    assert ours.decode(found) == text


def crafted(**parts) -> str:
    return json.dumps(json.loads(trained.bpe()) | parts)


BACKTRACKS = split("(a+a+)+b")
REFUSED = {
    "fixed_length_of_0": ({"pre_tokenizer": {"type": "FixedLength", "length": 0}}, "pre_tokenizer.length = 0"),
    "strip_past_every_token": (
        {"decoder": {"type": "Strip", "content": " ", "start": 0, "stop": 1 << 40}},
        "decoder.stop = 1099511627776",
    ),
    "backtracking": ({"pre_tokenizer": BACKTRACKS}, "pre_tokenizer.pattern.Regex"),
    "backtracking_in_a_sequence": (
        {"pre_tokenizer": sequence("pretokenizers", BACKTRACKS)},
        "pre_tokenizer.pretokenizers[0].pattern.Regex",
    ),
    "bad_charsmap": (
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////wAAAAAAAAAA"}},
        "normalizer.precompiled_charsmap",
    ),
    "no_base64": (
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "?"}},
        "normalizer.precompiled_charsmap",
    ),
    "deep": ({"normalizer": None, "x": json.loads("[" * 40 + "]" * 40)}, "nests deeper"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_crafted_files_are_refused_by_field_and_value(name):
    parts, named = REFUSED[name]
    with pytest.raises(InvalidTokenizerError) as error:
        Tokenizer.from_str(crafted(**parts))
    assert named in str(error.value)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"vocab": {"a": 0, "b": 1 << 30}, "merges": []}, "model.vocab.b = 1073741824"),
        ({"vocab": {"a": 0, "b": 0}, "merges": []}, "model.vocab.b = 0"),
        ({"vocab": {"a": 0}, "merges": [["a", "c"]]}, "model.merges[0]"),
        ({"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"], ["a", "b"]]}, "model.merges[1]"),
        ({"vocab": {"a": 0, "": 1}, "merges": [["a", ""]]}, "model.merges[0]"),
        ({"dropout": 0.1}, "model.dropout = 0.1"),
    ],
)
def test_crafted_models_are_refused_by_field_and_value(change, named):
    description = json.loads(trained.bpe())
    with pytest.raises(InvalidTokenizerError) as error:
        Tokenizer.from_str(json.dumps(description | {"model": description["model"] | change}))
    assert named in str(error.value)


def test_strip_past_a_token_is_nothing_to_strip():
    """Where `tokenizers` panics."""
    decoder = {"type": "Strip", "content": "a", "start": 0, "stop": 5}
    ours = Tokenizer.from_str(crafted(decoder=decoder))
    assert ours.decode(ours.encode("a").ids) != ""


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[]", b"{}", b"\n", b"YQ== 0", b"\x0a\x05ab", b"MTOK" * 9, b"    MTOK" + bytes(40)]
)
def test_other_bytes_are_refused(content):
    with pytest.raises(InvalidTokenizerError):
        Tokenizer(compile_tokenizer(content))


def test_oracle_version():
    assert tokenizers.__version__.startswith("0.23.")
