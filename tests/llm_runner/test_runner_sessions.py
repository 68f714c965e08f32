"""Sessions that fork, are saved, share prefixes and go on when the context is full: the same bits as without."""

import numpy as np
import pytest

from llm_runner import ArgumentError, ContextFullError, FileError, PrefixCache, SessionFileError, StateError

PROMPT = "import os\n\n\ndef main(path):\n    return "


def test_a_fork_goes_on_by_itself(demo):
    ids = demo.tokenize(PROMPT * 4)
    with demo.session() as session, demo.session() as other:
        session.append(PROMPT * 4)
        assert session.tokens == ids
        fork = session.fork()
        assert (fork.logits() == session.logits()).all()
        texts = ["".join(s.generate(max_new_tokens=20, do_sample=False)) for s in (session, fork)]
        assert texts[0] == texts[1] == "".join(other.generate(PROMPT * 4, max_new_tokens=20, do_sample=False))
        assert session.tokens == fork.tokens == other.tokens


@pytest.mark.parametrize("kv_dtype", ["float32", "float16", "int8", "int4"])
def test_a_saved_session_goes_on(demo, tmp_path, kv_dtype):
    path = tmp_path / "a.session"
    with demo.session(kv_dtype=kv_dtype) as session:
        session.append(PROMPT)
        session.save(path)
        expected = "".join(session.generate(max_new_tokens=20, do_sample=False))
    with demo.session(context_length=512, kv_dtype=kv_dtype) as session:
        session.restore(path)
        assert "".join(session.generate(max_new_tokens=20, do_sample=False)) == expected
    with demo.session(kv_dtype="float16" if kv_dtype == "float32" else "float32") as session:
        session.restore(path)
        assert session.tokens == demo.tokenize(PROMPT)
    with demo.session(context_length=4) as session, pytest.raises(ContextFullError, match="context_length"):
        session.restore(path)


def test_what_is_no_saved_session_is_refused(demo, tmp_path):
    with demo.session() as session:
        session.append("def ")
        with pytest.raises(FileError, match="nowhere"):
            session.restore(tmp_path / "nowhere")
        with pytest.raises(SessionFileError, match="is no saved session"):
            session.restore(demo.path)
        with pytest.raises(FileError, match="cannot be written"):
            session.save(tmp_path / "no folder" / "a")
        assert session.tokens == demo.tokenize("def ")


def test_a_turn_computes_what_is_new_in_it(demo):
    ids = demo.tokenize(PROMPT * 3)
    with demo.session() as session:
        assert session.set_tokens(ids[:-5]) == 0
        session.decode(7)
        assert session.set_tokens(ids) == len(ids) - 5
        assert session.set_tokens(ids) == len(ids)
        with demo.session() as other:
            assert (session.logits() == other.prefill(ids)).all()
        with pytest.raises(ArgumentError):
            session.set_tokens([])


def test_sessions_share_prefixes(demo):
    cache = PrefixCache(1 << 28)
    ids = demo.tokenize(PROMPT * 20)
    expected = demo.session().prefill([*ids, 5])
    with demo.session(prefix_cache=cache) as session:
        session.append(ids)
    with demo.session(context_length=len(ids) + 9, prefix_cache=cache) as session:
        np.testing.assert_array_equal(session.prefill([*ids, 5]), expected)
    info = cache.info
    assert info["hits"] == 1 and info["reused_tokens"] == len(ids) and info["bytes"] > 0
    cache.clear()
    assert cache.info["bytes"] == 0
    with pytest.raises(ArgumentError, match="max_bytes"):
        PrefixCache(-1)


def test_a_full_context_forgets_the_oldest_tokens(demo):
    with demo.session(context_length=64, overflow="shift", num_keep=4) as session:
        text = "".join(session.generate(PROMPT, max_new_tokens=200, ignore_eos=True))
        assert len(text) > 100
        assert session.info["forgotten_tokens"] > 0
        assert session.tokens[:4] == demo.tokenize(PROMPT)[:4]
        with demo.session() as other:
            assert (other.prefill(session.tokens) == session.logits()).all()
        with pytest.raises(ContextFullError, match="room for 60"):
            session.append([1] * 61)
    with demo.session(context_length=64) as session:
        assert len(session.generate(PROMPT, ignore_eos=True).token_ids) == 0
        with pytest.raises(ContextFullError):
            session.append([1] * 65)
    with pytest.raises(ArgumentError, match="overflow"):
        demo.session(overflow="forget")
    with pytest.raises(ArgumentError, match="num_keep = 64"):
        demo.session(context_length=64, num_keep=64)


def test_memory_grows_with_the_text(demo):
    with demo.session(context_length=512) as session:
        assert session.info["held_state_bytes"] == 0
        session.append([1])
        page = session.info["held_state_bytes"]
        session.append([1] * 300)
        assert session.info["held_state_bytes"] == 2 * page <= session.info["state_bytes"]
        session.reset()
        assert session.info["held_state_bytes"] == 0


def test_samples_come_from_one_prefill(demo):
    ids = demo.tokenize(PROMPT)
    options = {"max_new_tokens": 12, "temperature": 1.5, "ignore_eos": True}
    with demo.session(context_length=128) as session:
        texts = [""] * 5
        for index, piece in session.samples(5, PROMPT, seed=7, **options):
            texts[index] += piece
        assert session.tokens == ids
    alone = ["".join(demo.generate(ids, seed=7 + i, **options)) for i in range(5)]
    assert texts == alone
    assert len(set(texts)) > 1
    with demo.session() as session, pytest.raises(ArgumentError, match="count = 0"):
        session.samples(0, PROMPT)


def test_a_generation_says_that_its_session_was_changed(demo):
    with demo.session(context_length=64) as session:
        overtaken = session.generate(PROMPT, max_new_tokens=8, ignore_eos=True)
        next(overtaken)
        assert session.position > 0  # looking is no change
        session.rewind(2)
        with pytest.raises(StateError, match="another call changed the session"):
            list(overtaken)
        assert list(session.generate(max_new_tokens=2, ignore_eos=True))
