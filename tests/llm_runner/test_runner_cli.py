"""The command mote-runner: output, exit status, interruption."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from llm_runner import describe_options


def run(runner, *arguments, **options):
    return subprocess.run([runner, *map(str, arguments)], capture_output=True, text=True, timeout=300, **options)


def test_run_streams_what_the_library_generates(runner, demo, demo_path):
    arguments = ("run", demo_path, "--raw", "def f(", "--greedy", "--max-new-tokens", 24)
    done = run(runner, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout == demo.generate("def f(", do_sample=False, max_new_tokens=24).text() + "\n"
    assert "tok/s" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert run(runner, *arguments, "--quiet").stderr == ""


def test_temperature_0_is_greedy(runner, demo, demo_path):
    arguments = ("run", demo_path, "--raw", "def f(", "--max-new-tokens", 24, "--quiet")
    greedy = run(runner, *arguments, "--greedy").stdout
    assert run(runner, *arguments, "--temperature", 0, "--top-k", 5, "--seed", 3).stdout == greedy
    assert demo.generate("def f(", max_new_tokens=24, temperature=0, top_k=5, seed=3).text() + "\n" == greedy


@pytest.mark.parametrize("verb", ["run", "chat"])
def test_every_option_has_a_flag(runner, verb):
    text = run(runner, verb, "--help").stdout
    left_out = {"logprobs", "top_logprobs", "skip_eos", "name"} | (
        {"ignore_eos", "skip_special_tokens"} if verb == "chat" else set()
    )
    for row in describe_options():
        flag = "--" + row["name"].replace("_", "-")
        expected = row["scope"] != "beam_search" and row["name"] not in left_out
        assert (re.search(rf"{flag}(?![\w-])", text) is not None) == expected, flag


def test_run_reads_the_prompt_from_standard_input(runner, demo_path):
    piped = run(
        runner, "run", demo_path, "--raw", "-", "--greedy", "--max-new-tokens", 8, "--quiet", input="import os\n"
    )
    given = run(runner, "run", demo_path, "--raw", "import os\n", "--greedy", "--max-new-tokens", 8, "--quiet")
    assert piped.returncode == given.returncode == 0
    assert piped.stdout == given.stdout


def test_run_repeats_with_a_seed_and_ends_at_stop_strings(runner, demo_path):
    sampled = [
        run(runner, "run", demo_path, "--raw", "x = ", "--seed", 5, "--max-new-tokens", 16, "--quiet").stdout
        for _ in range(2)
    ]
    assert sampled[0] == sampled[1]
    whole = run(runner, "run", demo_path, "--raw", "x = ", "--greedy", "--max-new-tokens", 16, "--quiet").stdout
    stop = whole[3:5]
    stopped = run(
        runner, "run", demo_path, "--raw", "x = ", "--greedy", "--max-new-tokens", 16, "--quiet", "--stop", stop
    ).stdout
    assert stopped == whole[: whole.index(stop)] + "\n"


def test_run_takes_penalties_and_bans(runner, demo, demo_path):
    first = demo.generate("def f(", do_sample=False, max_new_tokens=1)
    first.text()
    flags = {
        "repetition_penalty": 1.2, "repetition_window": 20, "frequency_penalty": 0.5, "presence_penalty": 0.25,
        "no_repeat_ngram_size": 3, "dry_multiplier": 0.5, "dry_base": 1.5, "dry_allowed_length": 1, "dry_window": 30,
        "min_new_tokens": 5,
    }  # fmt: skip
    given = [str(part) for name, value in flags.items() for part in (f"--{name.replace('_', '-')}", value)]
    common = ("run", demo_path, "--raw", "def f(", "--greedy", "--max-new-tokens", 24, "--quiet")
    done = run(runner, *common, *given, "--logit-bias", f"{first.token_ids[0]}=-inf", "--dry-breaker", "(")
    expected = demo.generate(
        "def f(", do_sample=False, max_new_tokens=24, logit_bias={first.token_ids[0]: float("-inf")},
        dry_sequence_breakers=["("], **flags,
    )  # fmt: skip
    assert done.stdout == expected.text() + "\n", done.stderr
    common = ("run", demo_path, "--raw", "class Point:\n    def ", "--greedy", "--max-new-tokens", 24, "--quiet")
    banned = run(runner, *common, "--bad-words", "self").stdout
    assert "self" in run(runner, *common).stdout and "self" not in banned
    sampled = ("run", demo_path, "--raw", "x", "--seed", 3, "--max-new-tokens", 12, "--quiet")
    filters = ("--typical-p", 0.5, "--xtc-probability", 1, "--xtc-threshold", 0.05)
    assert (
        run(runner, *sampled, *filters).stdout
        == demo.generate("x", seed=3, max_new_tokens=12, typical_p=0.5, xtc_probability=1.0, xtc_threshold=0.05).text()
        + "\n"
    )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["run", "DEMO", "--raw", "x", "--logit-bias", "5"], "ID=BIAS"),
        (["run", "DEMO", "--raw", "x", "--logit-bias", "5=x"], "5=x"),
        (["run", "DEMO", "--raw", "x", "--bad-words", ""], "bad_words"),
        (["run", "nowhere.mote", "x"], "nowhere.mote"),
        (["run", "DEMO", ""], "the question is empty"),
        (["run", "DEMO", "--raw", ""], "the prompt is empty"),
        (["run", "DEMO", "--raw", "x", "--temperature", "-1"], "temperature"),
        (["run", "DEMO", "--raw", "x", "--top-p", "2"], "top_p"),
        (["run", "DEMO", "--raw", "x", "--context-length", "99999999"], "context_length"),
        (["run", "DEMO", "--raw", "x " * 50, "--context-length", "8"], "8 positions"),
        (["run", "DEMO", "--raw", "x", "--kv-dtype", "float64"], "kv_dtype"),
        (["run", "DEMO", "x", "--no-such-flag"], "there is no option '--no-such-flag': 'mote run --help' lists"),
        (["run", "DEMO", "x", "--temprature", "1"], "there is no option '--temprature': did you mean '--temperature'?"),
        (["run", "DEMO", "x", "--max-length", "9"], "'--max-length': it counts the prompt too; max_new_tokens does not"),
        (["run", "DEMO", "x", "--num-beams=4"], "'--num-beams': beams have a search of their own"),
        (["run", "DEMO", "x", "--seed", "18446744073709551616"], "seed = 18446744073709551616: must be an integer, 0..2^64-1"),
        (["run", "DEMO", "x", "--seed", "-1"], "seed = -1: must be an integer, 0 or more"),
        (["chat", "DEMO", "x", "y"], "'y' is one word too many"),
        (["chat", "DEMO", ""], "the question is empty"),
        (["run", "DEMO", "--raw", "x", "--cpus", "0,4095"], "CPU 4095 does not exist"),
        (["run", "DEMO", "--raw", "x", "--cpus", "zero"], "0-3,6"),
        (["run", "DEMO", "--raw", "x", "--priority", "urgent"], "priority"),
        (["run", "DEMO", "--raw", "x", "--profile", "/nowhere/trace.json", "--max-new-tokens", "1"], "/nowhere/trace.json"),
        (["run"], ".mote file"),
        (["bench"], ".mote file"),
        (["bench", "DEMO", "--limits"], "--limits"),
        (["bench", "DEMO", "-p", "100000000"], "positions"),
        (["bench", "DEMO", "-d", "100000000"], "--depth"),
        (["bench", "DEMO", "-d", "-1"], "--depth"),
        (["inspect", "DEMO", "--ops", "train"], "train"),
        (["fly"], "there is no verb 'fly': 'mote --help' lists"),
        (["rnu"], "there is no verb 'rnu': did you mean 'run'?"),
        ([], "no verb was given"),
    ],
)  # fmt: skip
def test_bad_input_is_one_paragraph_and_status_2(runner, demo_path, arguments, named):
    done = run(runner, *[str(demo_path) if word == "DEMO" else word for word in arguments])
    assert done.returncode == 2
    assert named in done.stderr
    assert done.stdout == ""
    assert "terminate" not in done.stderr


def test_interrupt_ends_cleanly(runner, demo_path):
    arguments = [runner, "run", str(demo_path), "--raw", "x", "--greedy", "--ignore-eos", "--threads", "1"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert b"cancelled" in errors


def test_a_saved_session_goes_on_as_if_it_had_not_ended(runner, demo_path, tmp_path):
    common = ("--greedy", "--ignore-eos", "--quiet")
    whole = run(runner, "run", demo_path, "--raw", "def f(", *common, "--max-new-tokens", 24).stdout
    path = tmp_path / "run.session"
    first = run(runner, "run", demo_path, "--raw", "def f(", *common, "--max-new-tokens", 10, "--save-session", path)
    second = run(runner, "run", demo_path, *common, "--max-new-tokens", 14, "--load-session", path)
    assert second.returncode == 0, second.stderr
    assert first.stdout.removesuffix("\n") + second.stdout == whole
    more = run(runner, "run", demo_path, "--raw", " x", *common, "--max-new-tokens", 2, "--load-session", path)
    assert more.returncode == 0, more.stderr
    path.write_bytes(b"nothing")
    refused = run(runner, "run", demo_path, *common, "--load-session", path)
    assert refused.returncode == 2
    assert "run.session" in refused.stderr


def test_a_full_context_shifts_when_asked(runner, demo_path):
    common = ("run", demo_path, "--raw", "def f(", "--greedy", "--ignore-eos", "--quiet", "--context-length", 16)
    refused = run(runner, *common, "--max-new-tokens", 40).stdout
    shifted = run(runner, *common, "--max-new-tokens", 40, "--overflow", "shift", "--num-keep", 2)
    assert shifted.returncode == 0, shifted.stderr
    assert shifted.stdout.startswith(refused.removesuffix("\n"))
    assert len(shifted.stdout) > len(refused) + 20
    assert "num_keep" in run(runner, *common, "--overflow", "shift", "--num-keep", 99).stderr


def test_verify_says_whether_the_file_is_whole(runner, demo_path, tmp_path):
    done = run(runner, "verify", demo_path)
    assert done.returncode == 0, done.stdout + done.stderr
    damaged = bytearray(demo_path.read_bytes())
    damaged[-1] ^= 1
    path = tmp_path / "damaged.mote"
    path.write_bytes(damaged)
    done = run(runner, "verify", path)
    assert done.returncode in (1, 2)  # 2 where the damage makes the segment itself unreadable
    assert "verified" not in done.stdout
    report = json.loads(run(runner, "verify", demo_path, "--json").stdout)
    assert report["passed"] is True
    assert report["checksums"] == "ok"


def _cpus_of(text):
    """Reads "0-3,6"."""
    ends = [part.split("-") for part in text.split(",")]
    return [cpu for each in ends for cpu in range(int(each[0]), int(each[-1]) + 1)]


def test_bench_reports_as_table_and_json(runner, demo_path):
    report = json.loads(run(runner, "bench", demo_path, "-p", "8,16", "-n", 4, "-r", 2, "--json").stdout)
    assert [(r["test"], r["tokens"]) for r in report["results"]] == [("prefill", 8), ("prefill", 16), ("decode", 4)]
    assert all(
        r["min_tokens_per_second"] <= r["median_tokens_per_second"] <= r["max_tokens_per_second"]
        for r in report["results"]
    )
    assert report["file_bytes"] == demo_path.stat().st_size
    assert report["load_seconds"] > 0
    assert report["peak_rss_bytes"] > 0
    assert report["peak_private_bytes"] > 0
    assert report["peak_file_backed_bytes"] > 0
    machine = report["machine"]
    assert "attention" in {choice["role"] for choice in machine["choices"]}
    if sys.platform == "linux":
        assert sum(len(_cpus_of(cluster["cpus"])) for cluster in machine["clusters"]) == len(os.sched_getaffinity(0))
    table = run(runner, "bench", demo_path, "-p", 8, "-n", 4, "-r", 1)
    assert "prefill" in table.stdout
    assert "load" in table.stdout


def test_bench_measures_at_depths(runner, demo_path):
    arguments = ("bench", demo_path, "-p", 3, "-n", 4, "-d", "0,40", "-r", 1)
    report = json.loads(run(runner, *arguments, "--profile", "--json").stdout)
    measured = [(r["test"], r["tokens"], r["depth"]) for r in report["results"]]
    assert measured == [("prefill", 3, 0), ("decode", 4, 0), ("prefill", 3, 40), ("decode", 4, 40)]
    assert report["context_length"] == 44
    # What fills the context is not part of the profile.
    assert [test["calls"] for test in report["profile"]["tests"]] == [1, 4, 1, 4]
    assert "depth" in run(runner, *arguments).stdout


def test_bench_profile_adds_up_by_op_and_by_layer(runner, demo_path):
    arguments = ("bench", demo_path, "-p", 8, "-n", 4, "-r", 1, "--threads", 1, "--profile")
    profile = json.loads(run(runner, *arguments, "--json").stdout)["profile"]
    assert profile["limits"]["read_gb_s"] > 0
    assert profile["limits"]["int8_gmac_s"] > 0
    assert [(test["method"], test["tokens"], test["calls"]) for test in profile["tests"]] == [
        ("prefill", 8, 1),
        ("decode", 4, 4),
    ]
    for test in profile["tests"]:
        for rows in (test["by_op"], test["by_layer"]):
            for key in ("count", "bytes", "macs"):
                assert sum(row[key] for row in rows) == test["all"][key]
        assert 0 < test["all"]["seconds"] <= test["seconds"]
        assert any(row["name"] == "model.layers.1" for row in test["by_layer"])
    table = run(runner, *arguments).stdout
    for word in ("mote.attention", "model.layers.1", "GB/s", "GOP/s", "limits"):
        assert word in table


def test_run_writes_a_chrome_trace(runner, demo_path, tmp_path):
    path = tmp_path / "trace.json"
    done = run(runner, "run", demo_path, "--raw", "x = ", "--greedy", "--max-new-tokens", 4, "--profile", path)
    assert done.returncode == 0, done.stderr
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    assert [event["name"] for event in events if event["cat"] == "call"] == ["prefill"] + 3 * ["decode"]
    assert any(event["args"]["origin"].startswith("model.layers.0") for event in events if event["cat"] == "op")


def test_kernels_are_listed_with_and_without_a_file(runner, demo_path):
    chosen = run(runner, "run", demo_path, "--kernels")
    assert chosen.returncode == 0, chosen.stderr
    assert "linear" in chosen.stdout
    assert run(runner, "inspect", demo_path, "--kernels").stdout == chosen.stdout
    everything = run(runner, "run", "--kernels").stdout
    assert "portable" in everything
    assert "This CPU offers" in everything


def test_log_levels_choose_what_is_printed(runner, demo_path):
    arguments = ("run", demo_path, "--raw", "x", "--max-new-tokens", 1, "--quiet")
    assert run(runner, *arguments, env=os.environ | {"MOTE_LOG": "off"}).stderr == ""
    assert "mote: linear" in run(runner, *arguments, env=os.environ | {"MOTE_LOG": "info"}).stderr
    loud = run(runner, *arguments, env=os.environ | {"MOTE_LOG": "loud"})
    assert "must be off, error, info or debug" in loud.stderr


def test_inspect_shows_the_file(runner, demo, demo_path):
    done = run(runner, "inspect", demo_path)
    assert done.returncode == 0, done.stderr
    for word in ("Methods", "mote.attention", "Weights", "States", "Segments", "byte-level BPE"):
        assert word in done.stdout
    assert json.loads(run(runner, "inspect", demo_path, "--json").stdout) == demo.describe()
    listed = re.findall(r"^ {0,3}\d+  ", run(runner, "inspect", demo_path, "--ops", "decode").stdout, re.M)
    assert len(listed) == next(m["num_instructions"] for m in demo.describe()["methods"] if m["name"] == "decode")


def test_tokenize_shows_ids(runner, demo, demo_path):
    report = json.loads(run(runner, "tokenize", demo_path, "Hello, world", "--json").stdout)
    assert report["ids"] == demo.tokenize("Hello, world")
    assert "".join(report["tokens"]) == "Hello, world"


def test_help_and_version(runner):
    assert "Examples" in run(runner, "--help").stdout
    for verb in ("run", "chat", "bench", "inspect", "verify", "tokenize"):
        assert run(runner, verb, "--help").returncode == 0
    assert run(runner, "--version").stdout.startswith("mote-runner ")


def test_a_closed_pipe_ends_it(runner, demo_path):
    with subprocess.Popen([runner, "run", str(demo_path), "--raw", "x", "--greedy", "--ignore-eos"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:  # fmt: skip
        process.stdout.read(1)
        process.stdout.close()
        deadline = time.monotonic() + 300
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert process.poll() is not None
