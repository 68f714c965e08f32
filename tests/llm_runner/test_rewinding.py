"""Sessions of models with recurrent states go back, fork, draft and share what they computed as those of plain
attention do: the bits are those of a fresh session, and what is computed again is counted."""

from __future__ import annotations

import json
import os
import random
import struct
import zlib

import numpy as np
import pytest

from llm_export.api import export
from llm_runner import ArgumentError, Model, PrefixCache, SessionFileError
from tests.contracts.architectures import save_tiny_checkpoint
from tests.contracts.tokenizer import save_tiny_tokenizer

NAMES = ("mamba", "mamba2", "qwen3_5_text", "kimi_linear", "lfm2", "falcon_h1", "recurrent_gemma", "granitemoehybrid",
         "deepseek_v4")  # fmt: skip
LENGTH = 160
RECURRENT_FIELD = 6  # of SavedSession in runner/session/state/session_file.fbs
# Says what to write as templates of reasoning models do; the reasoning of turns before is not in it.
TEMPLATE = (
    "{% for message in messages %}<{{ message.role }}>{{ message.content.split('/')[-1] }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>think:{% endif %}"
)


@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in NAMES])
def model(request, tmp_path_factory) -> Model:
    """A random model, whose config allows for more positions than those of the contract tests."""
    folder = tmp_path_factory.mktemp(request.param)
    save_tiny_checkpoint(request.param, folder)
    save_tiny_tokenizer(folder)
    for name, change in (
        ("config.json", {"max_position_embeddings": 2048, "model_max_length": 2048}),
        ("tokenizer_config.json", {"chat_template": TEMPLATE}),
    ):
        path = folder / name
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
    export(str(folder), folder / "tiny.mote", recipe="none")
    return Model.load(folder / "tiny.mote")


def ids_of(model: Model, count: int, seed: int = 0) -> list[int]:
    chosen = random.Random(seed)
    return [chosen.randrange(4, 100) for _ in range(count)]


def fresh(model: Model, ids: list[int], **options) -> np.ndarray:
    with model.session(threads=1, **options) as session:
        return session.prefill(ids)


class Counted:
    """The tokens that a session computes within a block."""

    def __init__(self, session):
        self.session = session
        self.tokens = 0

    def __enter__(self):
        self.session.start_profile()
        return self

    def __exit__(self, *exception):
        events = self.session.stop_profile()["traceEvents"]
        self.tokens = sum(event["args"]["tokens"] for event in events if "tokens" in event.get("args", {}))


def test_going_back_a_few_tokens_computes_nothing_and_changes_no_bit(model):
    ids = ids_of(model, LENGTH)
    most = 48
    with model.session(threads=1, prefill_chunk=64) as session:
        session.prefill(ids[: len(ids) // 2])
        for id in ids[len(ids) // 2 :]:
            session.decode(id)
        for count in (1, 2, most // 2, 3, most // 3):
            to = session.position - count
            with Counted(session) as counted:
                session.rewind(to)
            assert counted.tokens == 0 and session.tokens == ids[:to]
            rest = ids[to:]
            np.testing.assert_array_equal(session.prefill(rest), fresh(model, ids), err_msg=f"{count}")
            session.rewind(len(ids) - 1)
            np.testing.assert_array_equal(session.decode(ids[-1]), fresh(model, ids))


def test_any_walk_ends_with_the_bits_of_a_fresh_session(model):
    length, chosen = LENGTH, random.Random(7)
    with model.session(threads=1, prefill_chunk=11, rewind_tokens=16) as session:
        for step in range(60):
            room = length - session.position
            action = chosen.choice(["decode", "prefill", "rewind", "rewind", "verify"])
            if action == "rewind" and session.position > 0:
                session.rewind(chosen.randrange(max(0, session.position - 30), session.position + 1))
            elif room > 0:
                ids = ids_of(model, 1 if action == "decode" else chosen.randint(1, min(room, 40)), step)
                got = session.verify(ids)[-1] if action == "verify" else session.prefill(ids)
                np.testing.assert_array_equal(got, fresh(model, session.tokens), err_msg=f"step {step}: {action}")


def test_farther_back_only_what_is_behind_the_nearest_checkpoint_is_computed(model):
    first, more = ids_of(model, 50), ids_of(model, LENGTH - 50, 1)
    with model.session(threads=1, rewind_tokens=8) as session:
        session.prefill(first)
        for id in more:
            session.decode(id)
        for back in (45, 40, 34):  # the last 16 tokens of a prompt are there
            with Counted(session) as counted:
                session.rewind(back)
            assert counted.tokens == 0
            np.testing.assert_array_equal(session.prefill(more[:7]), fresh(model, first[:back] + more[:7]))
            session.rewind(back)


def test_forks_snapshots_and_files_have_the_same_bits_and_can_go_back(model, tmp_path):
    ids = ids_of(model, LENGTH - 4)
    expected = fresh(model, [*ids, 5])
    with model.session(threads=1) as session:
        session.prefill(ids)
        session.verify([7, 8, 9])
        session.rewind(len(ids))  # what was computed is not yet in the states
        with session.fork() as fork:
            np.testing.assert_array_equal(fork.decode(5), expected)
            fork.rewind(len(ids))
            np.testing.assert_array_equal(fork.decode(5), expected)
            with Counted(fork) as counted:
                fork.rewind(len(ids) - 3)
            assert counted.tokens == 0  # a prompt's last tokens go along
            np.testing.assert_array_equal(fork.prefill([*ids[-3:], 5]), expected)
        session.save(tmp_path / "a.session")
        np.testing.assert_array_equal(session.decode(5), expected)
    with model.session(threads=1) as session:
        session.restore(tmp_path / "a.session")
        np.testing.assert_array_equal(session.decode(5), expected)
        session.rewind(len(ids) - 2)
        np.testing.assert_array_equal(session.prefill([*ids[-2:], 5]), expected)


def test_drafts_change_no_token(model):
    prompt, num_drafts = ids_of(model, 9), 0
    for seed in range(3):
        options = {"max_new_tokens": 40, "ignore_eos": True, "seed": seed, "temperature": 0.4}
        told = model.generate(prompt, **options)
        told.text()
        text = [*prompt, *told.token_ids, *prompt]  # so that there is something to look up
        plain = model.generate(text, speculative="off", **options)
        plain.text()
        for draft_tokens in (1, 5):
            fast = model.generate(text, speculative="lookup", draft_tokens=draft_tokens, **options)
            fast.text()
            assert fast.token_ids == plain.token_ids
            assert fast.statistics["speculative_off_reason"] is None
            num_drafts += fast.statistics["num_drafts"]
    assert num_drafts > 0


def test_a_recurrent_model_drafts_for_itself(model):
    prompt, options = ids_of(model, 9), {"max_new_tokens": 20, "ignore_eos": True, "do_sample": False}
    with model.session(draft_model=model) as session, model.session() as alone:
        fast = session.generate(prompt, speculative="draft", draft_tokens=4, **options)
        plain = alone.generate(prompt, speculative="off", **options)
        fast.text(), plain.text()
        assert fast.token_ids == plain.token_ids
        assert fast.statistics["accepted_tokens"] == fast.statistics["proposed_tokens"] > 0


def test_the_prefix_cache_gives_a_text_that_parts_near_the_end_of_a_prompt(model):
    ids = ids_of(model, 50)
    cache = PrefixCache(max_bytes=1 << 26)
    with model.session(threads=1, prefix_cache=cache) as session:
        session.prefill(ids)
    other = [*ids[:-5], 3, 4, 5]
    with model.session(threads=1, prefix_cache=cache) as session:
        np.testing.assert_array_equal(session.prefill(other), fresh(model, other))
    assert cache.info["reused_tokens"] == len(ids) - 5


def test_beams_are_those_of_a_session_that_keeps_nothing(model):
    prompt, options = ids_of(model, 20), {"num_beams": 3, "max_new_tokens": 8}
    with model.session() as session, model.session(rewind_tokens=0) as plain:
        assert session.beam_search(prompt, **options) == plain.beam_search(prompt, **options)


def test_without_rows_there_are_no_drafts_and_going_back_computes_again(model):
    ids = ids_of(model, 30)
    for options in ({"rewind_tokens": 0}, {"rewind_mb": 0}):
        with model.session(threads=1, **options) as session:
            session.prefill(ids)
            session.rewind(20)
            np.testing.assert_array_equal(session.prefill(ids[20:]), fresh(model, ids))
            with pytest.raises(ArgumentError, match=r"speculative = lookup: rewind_tokens and rewind_mb leave"):
                session.generate([3, 4], speculative="lookup")
    with pytest.raises(ArgumentError, match="rewind_tokens = -1: must be"):
        model.session(rewind_tokens=-1)


def test_a_chat_whose_reasoning_is_stripped_computes_its_new_tokens_only(model):
    messages, options = [], {"max_new_tokens": 24, "ignore_eos": True, "do_sample": False, "speculative": "off"}
    with model.session(context_length=2048) as session:
        for turn in range(20):
            messages.append({"role": "user", "content": f"say {turn * 7919 % 1000}"})
            prompt = model.apply_chat_template(messages, add_generation_prompt=True)
            held = session.tokens
            common = len(os.path.commonprefix([prompt, held]))
            with Counted(session) as counted:
                reply = session.chat(messages, **options).run()["content"]
            with model.session(context_length=2048) as alone:
                assert alone.chat(messages, **options).run()["content"] == reply
            decoded = options["max_new_tokens"] - 1
            assert counted.tokens - decoded <= 1.05 * (len(prompt) - common)
            messages.append({"role": "assistant", "content": f"thoughts/{turn} it is"})


def test_states_of_another_shape_in_a_file_are_not_taken(model, demo, tmp_path):
    ids, path = ids_of(model, 40), tmp_path / "a.session"
    with model.session(threads=1) as session:
        session.prefill(ids)
        session.save(path)
    with demo.session() as session, pytest.raises(SessionFileError, match="was saved with another model file"):
        session.restore(path)
    path.write_bytes(with_a_number_less(path.read_bytes()))
    with model.session(threads=1) as session:
        session.restore(path)  # its tokens are computed again
        np.testing.assert_array_equal(session.decode(5), fresh(model, [*ids, 5]))


def with_a_number_less(file: bytes) -> bytes:
    """A saved session whose recurrent states have one number less, with a checksum that agrees."""
    header, description_bytes = 40, struct.unpack_from("<Q", file, 16)[0]
    body = bytearray(file[header : header + description_bytes])
    (root,) = struct.unpack_from("<I", body)
    table = root - struct.unpack_from("<i", body, root)[0]
    field = root + struct.unpack_from("<H", body, table + 4 + 2 * RECURRENT_FIELD)[0]
    vector = field + struct.unpack_from("<I", body, field)[0]
    (count,) = struct.unpack_from("<I", body, vector)
    assert count > 0
    struct.pack_into("<I", body, vector, count - 1)
    checksum = struct.pack("<I", zlib.crc32(body))
    return file[:12] + checksum + file[16:header] + bytes(body) + file[header + description_bytes :]
