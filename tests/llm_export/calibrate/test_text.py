"""What a calibration text may be, and what is said of one that it may not be."""

import dataclasses
import json

import pytest
import torch

from llm_export.calibrate import text
from llm_export.calibrate.text import LENGTH, MIN_TOKENS, NUM_SEQUENCES, read_sequences
from llm_export.checkpoint import open_checkpoint
from llm_export.errors import ArgumentError, FileError
from tests.demo import CHECKPOINT


@pytest.fixture(scope="module")
def checkpoint():
    return open_checkpoint(CHECKPOINT)


def read(source, checkpoint, max_length=2048):
    return read_sequences(source, checkpoint, 1 << 20, max_length)


def test_the_sample_gives_sequences_of_one_length(checkpoint):
    found = read("default", checkpoint)
    assert len(found) == NUM_SEQUENCES and {tuple(ids.shape) for ids in found} == {(1, LENGTH)}
    assert all(torch.equal(a, b) for a, b in zip(found, read("default", checkpoint), strict=True))
    assert {tuple(ids.shape) for ids in read("default", checkpoint, 40)} == {(1, 40)}


def test_the_sample_says_what_may_be_done_with_it():
    assert "Apache-2.0" in (text.SAMPLE / "README.md").read_text()
    assert 100_000 < sum(path.stat().st_size for path in text.SAMPLE.glob("*.txt")) < 200_000


def test_a_text_and_chats(checkpoint, tmp_path):
    plain, chats = tmp_path / "a.txt", tmp_path / "b.jsonl"
    plain.write_text("Grüße an alle. " * 1000, encoding="utf-8")
    reply = {"role": "assistant", "content": "Good morning to you. " * 20}
    turns = [{"role": "user", "content": "Hello there."}, reply]
    chats.write_text((json.dumps({"messages": turns}) + "\n\n") * 60)
    assert len(read(plain, checkpoint)) >= 4
    with_template = read(chats, checkpoint)
    without = read(chats, dataclasses.replace(checkpoint, chat_template=""))
    assert len(with_template) >= len(without) >= 4


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", b"short", f"a.txt: is a calibration text of .* tokens: must have at least {MIN_TOKENS}"),
        ("a.txt", b"", "of 0 tokens: must have at least"),
        ("a.txt", b"good \xff bad", "a.txt: byte 5 is no UTF-8: a calibration text must be UTF-8"),
        ("a.jsonl", b'{"text": "x"}\n', "a.jsonl: line 1: has messages = null: must be an object with a list"),
        ("a.jsonl", b'\n[1]\n', "line 2: has a list: must be an object with a list 'messages'"),
        ("a.jsonl", b'{"messages": []}', r"line 1: has messages = \[\]: must be"),
        ("a.jsonl", b'{"messages": [{"role": "user"}]}', r"messages\[0\].content is missing or no string"),
        ("a.jsonl", b'{"messages": [{"content": "x", "role": 3}]}', r"messages\[0\].role is missing or no string"),
        ("a.jsonl", b'{"messages": ["x"]}', r"messages\[0\].role is missing or no string"),
        ("a.jsonl", b"{", "line 1: not valid JSON"),
        ("a.jsonl", b"[" * 100_000, "line 1: not valid JSON"),
    ],
)
def test_refuses(checkpoint, tmp_path, name, content, expected):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=expected):
        read(tmp_path / name, checkpoint)


def test_refuses_what_is_not_there(checkpoint, tmp_path):
    with pytest.raises(FileError, match="nothing: cannot be read: .*a text file, a .jsonl file or 'default'"):
        read(tmp_path / "nothing", checkpoint)


def test_refuses_a_checkpoint_without_a_tokenizer(checkpoint):
    with pytest.raises(ArgumentError, match="calibration = 'default': the checkpoint has no tokenizer"):
        read("default", dataclasses.replace(checkpoint, tokenizer=None))


def test_refuses_ids_that_the_model_does_not_have(checkpoint):
    with pytest.raises(FileError, match="must be below vocab_size 100"):
        read_sequences("default", checkpoint, 100, 512)
