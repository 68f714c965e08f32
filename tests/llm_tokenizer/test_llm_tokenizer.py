"""The package itself: files, errors, ill-formed text, batches, real vocabularies."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_tokenizer import ArgumentError, FileError, InvalidTokenizerError, Tokenizer, compile_tokenizer
from tests.llm_tokenizer import oracle, trained
from tests.llm_tokenizer.trained import sequence, split

ROOT = Path(__file__).resolve().parents[2]
REAL = Path(os.environ.get("MOTE_TEST_TOKENIZERS", ROOT.parent / "shared" / "data" / "tokenizers"))


@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "falcon", "phi-3"])
def test_real_vocabularies(name):
    path = REAL / f"{name}.json.gz"
    if not path.is_file():
        pytest.skip(f"{path} is not here; MOTE_TEST_TOKENIZERS names the folder")
    content = gzip.decompress(path.read_bytes()).decode()
    oracle.assert_same_on_all_texts(*oracle.both(content), step=7)


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


def test_ill_formed_text_is_read_as_python_replaces_it(pair):
    ours, _ = pair
    rng = random.Random(1)
    strings = [bytes([a]) for a in range(256)] + [bytes([a, b]) for a in range(256) for b in range(256)]
    strings += [
        bytes(rng.choice([rng.randrange(256), 0xE2, 0x82, 0xF0, 0x9F, 0xED]) for _ in range(rng.randrange(9)))
        for _ in range(20_000)
    ]
    for data in strings:
        text = data.decode(errors="replace")
        ids = ours._core.encode_bytes(data, False, False, 0)[0]
        assert ours.decode(ids, False) == text, data
        assert ids == ours._core.encode(text, False, False, 0)[0], data


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
