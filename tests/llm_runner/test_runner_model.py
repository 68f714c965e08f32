"""Models and sessions in Python, on the demo model without quantization; the oracle is Hugging Face eager."""

from __future__ import annotations

import gc
import json
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from llm_export.api import export
from llm_runner import (
    ArgumentError,
    CancelledError,
    ContextFullError,
    FileError,
    Model,
    MoteError,
    ProgramError,
)

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"
PROMPT = "def read_lines(path):\n"


def greedy_by_transformers(eager, ids, count, **options):
    tokens = torch.tensor([ids])
    return eager.generate(
        tokens, attention_mask=torch.ones_like(tokens), do_sample=False, max_new_tokens=count, eos_token_id=[2, 0],
        pad_token_id=0, temperature=None, top_p=None, top_k=None, **options,
    )[0, len(ids):].tolist()  # fmt: skip


def test_greedy_ids_are_those_of_transformers(demo, eager):
    for prompt in (PROMPT, "The ", "<|im_start|>user\nWhat is a list?<|im_end|>\n<|im_start|>assistant\n"):
        ids = demo.tokenize(prompt)
        generation = demo.generate(prompt, do_sample=False, max_new_tokens=48, threads=1)
        text = generation.text()
        assert generation.token_ids == greedy_by_transformers(eager, ids, 48)
        assert text == demo.detokenize(generation.token_ids, skip_special_tokens=True)


@pytest.mark.parametrize(
    "options_for",  # ids of plain greedy decoding, so that each option has something to change
    [
        lambda ids: {"repetition_penalty": 1.3},
        lambda ids: {"no_repeat_ngram_size": 3},
        lambda ids: {"bad_words_ids": [ids[1:2], ids[4:6], [2]], "suppress_tokens": ids[7:8]},
        lambda ids: {"sequence_bias": [[ids[2:3], -4.0], [ids[5:7], -9.0]], "no_repeat_ngram_size": 4},
    ],
    ids=["repetition", "ngrams", "bans", "biases"],
)
def test_greedy_with_penalties_is_that_of_transformers(demo, eager, options_for):
    plain = demo.generate(PROMPT, do_sample=False, max_new_tokens=48, ignore_eos=True)
    plain.text()
    options = options_for(plain.token_ids)
    generation = demo.generate(PROMPT, do_sample=False, max_new_tokens=48, **options)
    generation.text()
    assert generation.token_ids == greedy_by_transformers(eager, demo.tokenize(PROMPT), 48, **options)
    assert generation.token_ids != plain.token_ids


def test_no_end_before_min_new_tokens(demo):
    eos = demo.generation_config["eos_token_id"][0]
    short = demo.generate(PROMPT, do_sample=False, max_new_tokens=9, logit_bias={eos: 100.0})
    assert (short.text(), short.finish_reason) == ("", "eos")
    later = demo.generate(PROMPT, do_sample=False, max_new_tokens=9, min_new_tokens=5, logit_bias={eos: 100.0})
    later.text()
    assert (len(later.token_ids), later.finish_reason) == (6, "eos")


def test_options_of_the_file_s_generation_config_hold(tmp_path, demo):
    folder = tmp_path / "checkpoint"
    shutil.copytree(DEMO, folder)
    config = json.loads((folder / "generation_config.json").read_text())
    first = demo.generate(PROMPT, do_sample=False, max_new_tokens=1)
    first.text()
    config |= {"do_sample": False, "suppress_tokens": first.token_ids, "no_repeat_ngram_size": 2, "min_new_tokens": 3}
    (folder / "generation_config.json").write_text(json.dumps(config))
    export(folder, tmp_path / "demo.mote", recipe="none", check="off")
    with Model.load(tmp_path / "demo.mote") as model:
        found = model.generate(PROMPT, max_new_tokens=24)
        found.text()
    expected = demo.generate(
        PROMPT, do_sample=False, max_new_tokens=24, suppress_tokens=first.token_ids, no_repeat_ngram_size=2,
        min_new_tokens=3,
    )  # fmt: skip
    expected.text()
    assert found.token_ids == expected.token_ids


def test_prefill_decode_and_verify_agree_with_eager(demo, eager):
    ids = demo.tokenize(PROMPT * 20)[:40]
    with torch.no_grad():
        expected = eager(torch.tensor([ids])).logits[0].numpy()
    scale = np.abs(expected).max()
    session = demo.session(context_length=64, threads=2, prefill_chunk=16, kv_dtype="float32")
    prefilled = session.prefill(ids[:30])
    assert prefilled.shape == (demo.info["vocab_size"],)
    assert prefilled.dtype == np.float32
    np.testing.assert_allclose(prefilled, expected[29], atol=1e-4 * scale)
    for i in range(30, 36):
        np.testing.assert_allclose(session.decode(ids[i]), expected[i], atol=1e-4 * scale)
    verified = session.verify(ids[36:])
    assert verified.shape == (4, demo.info["vocab_size"])
    np.testing.assert_allclose(verified, expected[36:], atol=1e-4 * scale)
    assert session.position == 40


@pytest.mark.parametrize(("kv_dtype", "tolerance"), [("float16", 5e-3), ("int8", 5e-2), ("int4", 1.0)])
def test_smaller_caches_stay_near(demo, kv_dtype, tolerance):
    ids = demo.tokenize(PROMPT * 4)
    exact = demo.session(threads=1, kv_dtype="float32").prefill(ids)
    found = demo.session(kv_dtype=kv_dtype, threads=1, prefill_chunk=8).prefill(ids)
    assert np.abs(found - exact).max() <= tolerance * np.abs(exact).max()


def test_text_arrives_in_pieces_and_statistics_follow(demo):
    generation = demo.generate(PROMPT, do_sample=False, max_new_tokens=12, ignore_eos=True)
    pieces = list(generation)
    assert len(pieces) > 1
    assert all(pieces)
    assert generation.finish_reason == "length"
    statistics = generation.statistics
    assert statistics["prompt_tokens"] == len(demo.tokenize(PROMPT))
    assert statistics["generated_tokens"] == 12 == len(generation.token_ids)
    assert statistics["time_to_first_token_seconds"] > 0
    assert statistics["decode_tokens_per_second"] > 0
    assert statistics["peak_rss_bytes"] > 0


def test_a_seed_repeats_and_no_seed_does_not(demo):
    def ids(**options):
        generation = demo.generate("import ", temperature=1.5, max_new_tokens=24, ignore_eos=True, **options)
        generation.text()
        return generation.token_ids

    assert ids(seed=1) == ids(seed=1)
    assert ids(seed=1) != ids(seed=2)
    assert ids() != ids()


def test_defaults_are_the_checkpoints(demo):
    assert demo.generation_config["eos_token_id"] == [2, 0]
    assert demo.chat_template == (DEMO / "chat_template.jinja").read_text()
    runs = {
        tuple(run.token_ids) for run in (demo.generate("x", max_new_tokens=16) for _ in range(4)) if run.text() or True
    }
    assert len(runs) > 1  # generation_config.json of the demo samples


def test_stop_strings_end_the_text(demo):
    whole = demo.generate(PROMPT, do_sample=False, max_new_tokens=40).text()
    stop = whole[10:13]
    generation = demo.generate(PROMPT, do_sample=False, max_new_tokens=40, stop_strings=[stop, "never in it"])
    assert generation.text() == whole[: whole.index(stop)]
    assert generation.finish_reason == "stop_string"


def test_closing_stops(demo):
    with demo.generate(PROMPT, do_sample=False) as generation:
        next(generation)
    assert list(generation) == []
    assert generation.finish_reason is None
    assert generation.statistics["generated_tokens"] >= 1


def test_a_session_goes_on_where_it_was(demo):
    ids = demo.tokenize(PROMPT)
    whole = demo.generate(ids, do_sample=False, max_new_tokens=10, ignore_eos=True)
    whole.text()
    with demo.session() as session:
        first = session.generate(ids, do_sample=False, max_new_tokens=4, ignore_eos=True)
        first.text()
        assert session.position == len(ids) + 3  # the last sampled token is not in the cache yet
        second = session.generate(first.token_ids[-1:], do_sample=False, max_new_tokens=6, ignore_eos=True)
        second.text()
        assert first.token_ids + second.token_ids == whole.token_ids
        session.reset()
        assert session.position == 0


def test_cancel_from_another_thread(demo):
    session = demo.session()
    generation = session.generate(PROMPT, do_sample=False, ignore_eos=True)
    timer = threading.Timer(0.05, session.cancel)
    timer.start()
    generation.text()
    timer.join()
    assert generation.finish_reason in ("cancelled", "length")
    session.reset()
    session.cancel()
    with pytest.raises(CancelledError):
        session.prefill([1])
    assert session.prefill([1]).shape == (demo.info["vocab_size"],)


def test_threads_run_sessions_of_one_model_side_by_side(demo):
    ids = demo.tokenize(PROMPT)
    expected = demo.session(threads=1).prefill(ids)
    found = [None] * 4

    def work(i):
        found[i] = demo.session(threads=1).prefill(ids)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for logits in found:
        np.testing.assert_array_equal(logits, expected)


def test_bad_calls_are_refused_and_leave_the_session_usable(demo):
    session = demo.session(context_length=8)
    vocab_size = demo.info["vocab_size"]
    for ids in ([], [vocab_size], [-1], [2**40], "text", [1.5], [[1]]):
        with pytest.raises(ArgumentError):
            session.prefill(ids)
        with pytest.raises(ArgumentError):
            session.verify(ids)
    with pytest.raises(ContextFullError, match=r"9 more tokens.*8 positions"):
        session.prefill([1] * 9)
    with pytest.raises(ContextFullError, match=r"9 tokens.*8 positions"):
        session.generate([1] * 9)
    assert session.position == 0
    session.prefill([1] * 8)
    with pytest.raises(ContextFullError):
        session.decode(1)


@pytest.mark.parametrize(
    "options",
    [{"context_length": -1}, {"context_length": 10**9}, {"context_length": "long"}, {"kv_dtype": "float64"},
     {"threads": -1}, {"threads": 10**6}, {"prefill_chunk": -1}],
)  # fmt: skip
def test_bad_session_options_are_named(demo, options):
    with pytest.raises(ArgumentError) as error:
        demo.session(**options)
    assert next(iter(options)) in str(error.value)


def test_an_empty_prompt_is_refused(demo):
    with pytest.raises(ArgumentError, match="at least one"):
        demo.generate("")


def test_bad_files_are_refused(tmp_path, demo_path):
    with pytest.raises(FileError, match="nowhere.mote"):
        Model.load(tmp_path / "nowhere.mote")
    content = demo_path.read_bytes()
    for name, damaged in {
        "empty": b"",
        "short": content[:4000],
        "magic": b"X" + content[1:],
        "long": content + b"x",
    }.items():
        path = tmp_path / f"{name}.mote"
        path.write_bytes(damaged)
        with pytest.raises(ProgramError, match=name):
            Model.load(path)


def test_describe_tells_what_is_in_the_file(demo, demo_path):
    about = demo.describe()
    assert {method["name"] for method in about["methods"]} == {"prefill", "decode", "verify"}
    assert about["file_bytes"] == demo_path.stat().st_size == demo.info["file_bytes"]
    assert sum(item["bytes"] for item in about["weights"]["formats"]) == about["weights"]["bytes"]
    assert about["provenance"]["model_type"]
    assert all(state["bytes_per_position"]["float32"] > 0 for state in about["states"])
    demo.check_segments()


def test_golden_samples_pass(demo):
    report = demo.session().check_golden()
    assert report["passed"], report
    assert all(sample["tokenizer_agrees"] for sample in report["samples"])


def test_closed_handles_raise_and_the_rest_goes_on(demo_path):
    model = Model.load(demo_path)
    session = model.session()
    model.close()
    with pytest.raises(MoteError, match="closed"):
        model.tokenize("x")
    assert session.prefill([1]).size > 0
    session.close()
    with pytest.raises(MoteError, match="closed"):
        session.prefill([1])
    del session, model
    gc.collect()


def test_cpus_and_priority_are_checked_and_change_no_result(demo):
    ids = demo.tokenize(PROMPT)
    expected = demo.session(context_length=64).prefill(ids)
    bound = demo.session(context_length=64, cpus=[min(os.sched_getaffinity(0))], priority="low")
    np.testing.assert_array_equal(bound.prefill(ids), expected)
    assert bound.info["num_threads"] == 1
    for cpus in ("0-", [], "", [4095], [-1]):
        with pytest.raises(ArgumentError, match="cpus"):
            demo.session(cpus=cpus)
    with pytest.raises(ArgumentError, match="low"):
        demo.session(priority="urgent")


def test_a_profile_is_a_chrome_trace(demo):
    session = demo.session(context_length=64)
    with pytest.raises(ArgumentError, match="profile"):
        session.stop_profile()
    session.start_profile()
    session.prefill(demo.tokenize(PROMPT))
    session.decode(1)
    events = [event for event in session.stop_profile()["traceEvents"] if event["ph"] == "X"]
    assert [event["name"] for event in events if event["cat"] == "call"] == ["prefill", "decode"]
    assert all(event["args"]["bytes"] > 0 for event in events if event["cat"] == "op")


def test_logprobs_are_the_model_s_own_distribution(demo, eager):
    ids = demo.tokenize(PROMPT)
    generation = demo.generate(PROMPT, seed=4, temperature=1.5, top_k=20, repetition_penalty=1.2, max_new_tokens=12,
                               ignore_eos=True, logprobs=True, top_logprobs=5, kv_dtype="float32")  # fmt: skip
    generation.text()
    assert [entry.id for entry in generation.logprobs] == generation.token_ids
    with torch.no_grad():
        logits = eager(torch.tensor([ids + generation.token_ids])).logits[0, len(ids) - 1 : -1]
    expected = logits.log_softmax(-1).numpy()
    for row, entry in zip(expected, generation.logprobs, strict=True):
        assert abs(entry.logprob - row[entry.id]) < 1e-3
        np.testing.assert_allclose([logprob for _, logprob in entry.top], np.sort(row)[::-1][:5], atol=1e-3)
        np.testing.assert_allclose([row[id] for id, _ in entry.top], np.sort(row)[::-1][:5], atol=1e-3)


def test_logprobs_cost_nothing_where_not_asked_for(demo):
    generation = demo.generate(PROMPT, do_sample=False, max_new_tokens=2)
    generation.text()
    assert [(entry.logprob, entry.top) for entry in generation.logprobs] == [(0.0, [])] * 2
    every = demo.generate(PROMPT, do_sample=False, max_new_tokens=1, top_logprobs=1000)
    every.text()
    top = every.logprobs[0].top
    assert len(top) == 1000 and top[0] == (every.token_ids[0], every.logprobs[0].logprob)
    assert all(a[1] >= b[1] for a, b in zip(top, top[1:], strict=False))
    with pytest.raises(ArgumentError, match="top_logprobs = 1001"):
        demo.generate(PROMPT, top_logprobs=1001)


def test_score_is_the_log_likelihood_of_eager(demo, eager):
    ids = demo.tokenize(PROMPT * 6)
    with torch.no_grad():
        rows = eager(torch.tensor([ids])).logits[0].log_softmax(-1)
    expected = rows[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0].numpy()
    np.testing.assert_allclose(demo.score(PROMPT * 6), expected, atol=2e-3)
    with demo.session(context_length=len(ids), prefill_chunk=7) as session:
        found = session.score(ids)
        assert session.position == len(ids)
    assert (found == demo.score(ids)).all()
    assert demo.score(ids[:1]).shape == (0,)
    with pytest.raises(ArgumentError):
        demo.score([])


def test_a_session_goes_back(demo):
    ids = demo.tokenize(PROMPT * 3)
    with demo.session() as session:
        whole = session.prefill(ids)
        session.decode(5)
        session.rewind(10)
        assert (session.tokens, session.position) == (ids[:10], 10)
        assert (session.prefill(ids[10:]) == whole).all()
        assert session.tokens == ids
        with pytest.raises(ArgumentError, match=f"must be 0..{len(ids)}"):
            session.rewind(len(ids) + 1)
        with pytest.raises(ArgumentError, match="position"):
            session.rewind(-1)
        session.rewind(0)
        assert session.tokens == []
