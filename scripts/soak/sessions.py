"""Sessions: cancelled anywhere, limited in every way, in many threads, and called in any order."""

from __future__ import annotations

import json
import os
import random
import re
import tempfile
import threading
import time
from pathlib import Path

from scripts.soak.figures import ROOT, Figure, Size, last_lines, run

ASAN, TSAN = (ROOT / "build" / name / "tests" / "runner" for name in ("asan", "tsan"))
PROMPT = "def read_lines(path):\n"
GREEDY = {"do_sample": False, "ignore_eos": True}
NEW_TOKENS = 40
KERNEL_TESTS = "^test_(simd|selection|kernels|kernels_part_.|kernels_packed|program|session|generation)$"
MODES = {
    "one token after another": {},
    "speculative, by look-up": {"speculative": "lookup"},
    "drawn at random": {"do_sample": True, "temperature": 1.5, "seed": 3},
}


def cancelling(size: Size) -> list[Figure]:
    """R14: cancelled from another thread at random times, from the prompt on; then continued to the bit."""
    from mote import Model

    rng = random.Random(1)
    figures = []
    with Model.load(str(size.model)) as model:
        ids = model.tokenize(PROMPT * 12)
        for mode, options in MODES.items():
            figures.append(_cancel_often(model, ids, GREEDY | options, mode, size.count(1000), rng))
    return figures


def _cancel_often(model, ids: list[int], options: dict, mode: str, points: int, rng: random.Random) -> Figure:
    late, tries, wrong = [], 0, ""
    with model.session(prefill_chunk=16) as session:
        whole = session.generate(ids, max_new_tokens=NEW_TOKENS, **options)
        whole.text()
        expected = whole.token_ids
        # A try that ends before its cancel says how long a run takes here and now.
        seconds = 0.0
        while len(late) < points and tries < 20 * points + 20:
            tries += 1
            session.reset()
            generation = session.generate(ids, max_new_tokens=NEW_TOKENS, **options)
            cancelled_at: list[int] = []

            def cancel(generation=generation, cancelled_at=cancelled_at) -> None:
                generation.cancel()
                cancelled_at.append(len(generation.token_ids))

            timer = threading.Timer(rng.uniform(0, seconds) if seconds else 60, cancel)
            start = time.monotonic()
            timer.start()
            for _ in generation:
                pass
            took = time.monotonic() - start
            timer.cancel()
            timer.join()
            got = generation.token_ids
            if generation.finish_reason != "cancelled":
                seconds = took
                continue
            late.append(len(got) - cancelled_at[0] if cancelled_at else 0)
            rest = session.generate((ids + got)[session.position :], max_new_tokens=NEW_TOKENS - len(got), **options)
            rest.text()
            if not options["do_sample"] and got + rest.token_ids != expected:
                wrong = wrong or f"after {len(got)} tokens the rest is another"
            if got != expected[: len(got)]:
                wrong = wrong or f"{len(got)} tokens differ from those of an uncancelled run"
    name = f"cancel, {mode}"
    if not late:
        return Figure("R14", name, f"none of {tries} cancels came before the end", False)
    late.sort()
    found = f"{len(late):,} of {tries:,} came in time; tokens after it: p50 {late[len(late) // 2]}"
    found += f", p99 {late[len(late) * 99 // 100]}; the rest is that of an uncancelled run"
    return Figure("R14", name, wrong or found, not wrong)


def limits(size: Size) -> list[Figure]:
    """R15: random limits end a text where they must, stop strings across tokens too."""
    from mote import ContextFullError, Model

    rng = random.Random(2)
    counts = {"stop strings, cut anywhere": 0, "max_new_tokens": 0, "context_length": 0, "max_time": 0}
    wrong: dict[str, str] = {}
    with Model.load(str(size.model)) as model:
        ids = model.tokenize(PROMPT)
        text = model.generate(ids, max_new_tokens=120, **GREEDY).text()

        def expect(kind: str, holds: bool, what: str) -> None:
            counts[kind] += 1
            if not holds:
                wrong.setdefault(kind, what)

        for _ in range(size.count(1000)):
            begin = rng.randrange(len(text) - 12)
            stop = text[begin : begin + rng.randrange(1, 12)]
            mode = rng.choice([{}, {"speculative": "lookup"}, {"stop_strings": [stop, "never said"]}])
            options = GREEDY | {"stop_strings": [stop], "max_new_tokens": 120} | mode
            generation = model.generate(ids, **options)
            found = generation.text()
            expect(
                "stop strings, cut anywhere",
                (found, generation.finish_reason) == (text[: text.index(stop)], "stop_string"),
                repr(stop),
            )
        for _ in range(size.count(200)):
            most = rng.randrange(1, 60)
            generation = model.generate(ids, max_new_tokens=most, **GREEDY)
            generation.text()
            expect(
                "max_new_tokens", (len(generation.token_ids), generation.finish_reason) == (most, "length"), str(most)
            )
        for _ in range(size.count(200)):
            length = rng.randrange(1, 40)
            with model.session(context_length=length) as session:
                try:
                    generation = session.generate(ids, max_new_tokens=100, **GREEDY)
                    generation.text()
                    holds = generation.finish_reason == "length" and session.position <= length
                except ContextFullError:
                    holds = len(ids) > length
                expect("context_length", holds, str(length))
        for _ in range(size.count(100)):
            generation = model.generate(ids, max_time=rng.uniform(0.0001, 0.02), max_new_tokens=1900, **GREEDY)
            generation.text()
            expect("max_time", generation.finish_reason == "time" and len(generation.token_ids) < 1900, "late")
    return [
        Figure("R15", kind, f"{count} cases" if kind not in wrong else f"differs: {wrong[kind]}", kind not in wrong)
        for kind, count in counts.items()
    ]


def threads(size: Size) -> list[Figure]:
    """R16: all tests under ThreadSanitizer, then those of sessions and handles in threads again and again."""
    if not (TSAN / "session" / "test_session").exists():
        return [Figure("R16", "ThreadSanitizer", "not built: make tsan", False)]
    done = run(["ctest", "--test-dir", ROOT / "build" / "tsan", "--output-on-failure"])
    tests = re.search(r"tests passed, (\d+) tests failed out of (\d+)", done.stdout)
    failed, total = map(int, tests.groups()) if tests else (1, 0)
    reports = done.stdout.count("WARNING: ThreadSanitizer")
    found = f"{total} programs, {failed} failed, {reports} reports"
    if failed:
        print(last_lines(done, 60))
    figures = [Figure("R16", "all C++ tests under ThreadSanitizer", found, not failed and not reports)]
    for program, name in (
        ("session/test_session", "*SessionsInThreads*"),
        ("capi/test_capi", "CApiMisuse.threads_that_close*"),
    ):
        end, rounds, reports, failed = time.monotonic() + size.seconds, 0, 0, False
        while time.monotonic() < end and not failed:
            done = run([TSAN / program, f"--gtest_filter={name}"])
            rounds, failed = rounds + 1, done.returncode != 0
            reports += (done.stdout + done.stderr).count("WARNING: ThreadSanitizer")
        if failed:
            print(last_lines(done, 60))
        what = "8 sessions in 4 threads" if "session" in program else "4 threads that close each other's handles"
        holds = not failed and not reports
        figures.append(
            Figure("R16", what, f"{rounds} rounds, {reports} reports, {'failed' if failed else 'as alone'}", holds)
        )
    return [*figures, lifecycles(size)]


def lifecycles(size: Size) -> Figure:
    """R16: 8 threads open, chat, cancel, close, fork, save and trim what they share, in any order."""
    count = size.count(10_000)
    done = run([TSAN / "capi" / "test_capi", "--gtest_filter=CApiLifecycles.*"], MOTE_SOAK_SEQUENCES=str(count))
    if done.returncode != 0:
        print(last_lines(done, 60))
    reports = (done.stdout + done.stderr).count("WARNING: ThreadSanitizer")
    found = f"{count:,} sequences, {reports} reports, {'failed' if done.returncode else 'texts as alone'}"
    return Figure("R16", "lifecycles of the C API in 8 threads", found, done.returncode == 0)


def any_calls(size: Size) -> list[Figure]:
    """R21: calls of the C API in random order, with open, closed and wrong handles, under the sanitizers."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        calls = str(size.count(1_000_000))
        filters = ["--gtest_filter=CApiSequences.*:CApiMisuse.*", f"--gtest_output=json:{report}"]
        done = run([ASAN / "capi" / "test_capi", *filters], MOTE_SOAK_CALLS=calls)
        tests = json.loads(report.read_text())["tests"]
    if done.returncode != 0:
        print(last_lines(done, 40))
    found = f"{int(calls):,} calls in random order, and {tests - 1} tests of misuse: no finding"
    return [Figure("R21", "C API with any handles", found, done.returncode == 0)]


def sanitized_kernels(size: Size) -> list[Figure]:
    """The kernels of each instruction set, and a model that runs on it, under AddressSanitizer and UBSan."""
    features = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    figures = []
    for mask, needs in (
        ("none", "sse2"),
        ("avx2", "avx2"),
        ("avx2+avxvnni", "avx_vnni"),
        ("avx2+avx512vnni", "avx512_vnni"),
        ("", ""),
    ):
        if needs and needs not in features:
            continue
        command = ["ctest", "--test-dir", ROOT / "build" / "asan", "-R", KERNEL_TESTS]
        command += ["--output-on-failure", "--parallel", os.cpu_count() or 1]
        variables = {"MOTE_CPU_FEATURES": mask} if mask else {}
        done = run(command, **variables)
        tests = re.search(r"tests passed, (\d+) tests failed out of (\d+)", done.stdout)
        failed, total = map(int, tests.groups()) if tests else (1, 0)
        if failed:
            print(last_lines(done, 60))
        model = run([ROOT / "build" / "asan" / "tests" / "runner" / "program" / "greedy", size.model], **variables)
        if model.returncode != 0:
            print(last_lines(model, 60))
            failed += 1
        what = f"kernels, MOTE_CPU_FEATURES={mask}" if mask else "kernels, all that the CPU has"
        figures.append(
            Figure(
                "R25",
                what,
                f"{total} programs and the demo model under ASan and UBSan, {failed} failed",
                not failed and total > 0,
            )  # fmt: skip
        )
    return figures


SUBJECTS = {
    "R14": cancelling,
    "R15": limits,
    "R16": threads,
    "R21": any_calls,
    "R25": sanitized_kernels,
}
