"""`mote inspect` of files that backends run parts of: who runs what, also where the library is missing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from llm_export import api
from mote.commands import runner_binary
from mote.commands.export import refusal_table, summary
from tests.llm_export.program_reader import read_program


@pytest.fixture(scope="module")
def exported(checked_report) -> tuple[Path, api.ExportReport]:
    return checked_report.path, checked_report


@pytest.fixture(scope="module")
def xnnpack_only(demo_files) -> Path:
    return demo_files.path(backends="xnnpack", check="off")


@pytest.fixture(scope="module")
def cpu_only(demo_files) -> Path:
    return demo_files.path()


def runner(*arguments: str | Path, library: str = "/nowhere/libXNNPACK.so") -> subprocess.CompletedProcess:
    environment = os.environ | {"MOTE_XNNPACK_LIBRARY": library}
    return subprocess.run([runner_binary(), *arguments], capture_output=True, text=True, env=environment)


def inspect(path: Path, *arguments: str, library: str = "/nowhere/libXNNPACK.so", status: int = 0) -> str:
    """What it prints; on standard error where the status is not 0."""
    done = runner("inspect", path, *arguments, library=library)
    assert done.returncode == status, done.stderr
    return done.stderr if status else done.stdout


def test_json_says_who_runs_what(exported):
    path, report = exported
    about = json.loads(inspect(path, "--json"))
    assert about["target"] == "cpu"
    assert about["targets"]["xnnpack"]
    for method in about["methods"]:
        delegated, total = report.num_delegated[method["target"], method["name"]]
        expected = {"cpu": total - delegated, "xnnpack": delegated}
        assert method["runs_on"] == {name: count for name, count in expected.items() if count}
        runners = [i["runs_on"] for i in method["instructions"] if i["runs_on"] is not None]
        path_of_a_step = ["cpu", *runners, "cpu"]
        assert method["num_crossings"] == sum(a != b for a, b in zip(path_of_a_step, path_of_a_step[1:], strict=False))
        assert method["num_delegates"] == runners.count("xnnpack")
        for instruction in method["instructions"]:
            assert ("delegate" in instruction) == (instruction["op"] == "mote.delegate")
    assert all(delegate["ops"]["mote.linear"] >= 1 for delegate in about["delegates"])


def test_inspecting_packs_and_writes_nothing(xnnpack, xnnpack_only):
    before = set(xnnpack_only.parent.iterdir())
    about = json.loads(inspect(xnnpack_only, "--json", library=os.environ["MOTE_XNNPACK_LIBRARY"]))
    assert about["target"] == "xnnpack"
    assert set(xnnpack_only.parent.iterdir()) == before


def test_who_runs_a_file_says_so(exported, cpu_only):
    path, _ = exported
    fallback = "^runs on cpu; not on xnnpack: [a-z]"
    generate = ("run", path, "def ", "--max-new-tokens", "2")
    assert re.search(fallback, runner(*generate).stderr, re.M)
    assert "runs on" not in runner(*generate, "--quiet").stderr
    assert "runs on" not in runner("run", cpu_only, "def ", "--max-new-tokens", "2").stderr
    measure = ("bench", path, "-p", "2", "-n", "2", "-r", "1")
    assert re.search(fallback, runner(*measure).stdout, re.M)
    assert json.loads(runner(*measure, "--json").stdout)["target"] == "cpu"
    assert re.search(fallback, runner("verify", path).stdout, re.M)
    assert json.loads(runner("verify", path, "--json").stdout)["target"] == "cpu"


def test_who_runs_a_file_was_asked_for(xnnpack, exported):
    path, _ = exported
    done = runner(
        "run", path, "def ", "--max-new-tokens", "2", "--backend", "xnnpack", library=os.environ["MOTE_XNNPACK_LIBRARY"]
    )
    assert done.stderr.rstrip().endswith("\nruns on xnnpack")


def test_eval_on_a_backend_scores_as_the_cpu_does(xnnpack, exported, tmp_path):
    path, _ = exported
    text = tmp_path / "text.txt"
    text.write_text("def add(a, b):\n    return a + b\n")

    def evaluate(backend: str, **environment: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "mote.cli", "eval", path, "--text", text, "--backend", backend, "--json"]
        return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)

    scores = [json.loads(evaluate(backend).stdout)["perplexity"] for backend in ("cpu", "xnnpack")]
    assert scores[1] == pytest.approx(scores[0], rel=1e-2)
    missing = evaluate("xnnpack", MOTE_XNNPACK_LIBRARY="/nowhere/libXNNPACK.so")
    assert missing.returncode == 2
    assert "/nowhere/libXNNPACK.so" in missing.stderr


def test_ops_of_a_delegate_are_read_back(exported):
    path, report = exported
    specs = read_program(path).planned.program.delegates
    total = sum(sum(spec.ops.values()) for spec in specs)
    assert total == sum(delegated for delegated, _ in report.num_delegated.values())


def test_a_file_is_inspected_where_nothing_can_run_it(xnnpack_only):
    about = json.loads(inspect(xnnpack_only, "--json"))
    assert about["target"] is None
    assert "/nowhere/libXNNPACK.so" in about["targets"]["xnnpack"]
    text = inspect(xnnpack_only)
    assert re.search(r"runs here on +nothing", text)
    assert re.search(r"not on xnnpack .*xnnpack: .*/nowhere/libXNNPACK.so", text)
    for word in ("crossings a step", "Delegates", "xnnpack: ", "mote.linear", "Weights", "Segments"):
        assert word in text


def test_instructions_say_where_they_run(exported, xnnpack_only):
    about = json.loads(inspect(xnnpack_only, "--json"))
    decode = next(method for method in about["methods"] if method["name"] == "decode")
    listed = inspect(xnnpack_only, "--ops", "decode")
    blocks = re.split(r"^(?= {0,3}\d+  )", listed, flags=re.M)[1:]
    assert [block.split()[1] for block in blocks] == [i["runs_on"] or "view" for i in decode["instructions"]]
    delegated = [block for block in blocks if "mote.delegate" in block]
    assert delegated
    assert all("mote.linear" in block and ".weight" in block for block in delegated)

    path, _ = exported
    both = inspect(path, "--ops", "decode")
    assert "\nxnnpack: decode\n" in both and "\ncpu: decode\n" in both
    assert inspect(path, "--ops", "decode", "--backend", "xnnpack") == listed
    assert "mote.delegate" not in inspect(path, "--ops", "decode", "--backend", "cpu")


def test_one_target_is_picked_by_name(exported):
    path, _ = exported
    kept = json.loads(inspect(path, "--json", "--backend", "cpu"))
    assert {method["target"] for method in kept["methods"]} == {"cpu"}
    text = inspect(path, "--backend", "cpu")
    assert "Ops of the target cpu" in text and "Ops of the target xnnpack" not in text
    refused = inspect(path, "--backend", "npu", status=2)
    assert "--backend npu: the file has no such target (has: xnnpack, cpu)" in refused


def test_refusals_are_a_table(exported):
    _, report = exported
    lines = refusal_table(report).splitlines()
    assert lines[0] == "not on xnnpack:"
    assert lines[1].split() == ["op", "prefill", "verify", "decode", "because"]
    rows = [re.split(r"\s{2,}", line.strip(), maxsplit=4) for line in lines[2:]]
    numbers = [[0 if cell == "-" else int(cell) for cell in row[1:4]] for row in rows]
    assert sum(map(sum, numbers)) == len(report.refusals)
    assert [sum(row) for row in numbers] == sorted((sum(row) for row in numbers), reverse=True)
    assert {(row[0], row[4]) for row in rows} == {(r.op, r.reason) for r in report.refusals}
    assert "xnnpack: " in summary(report) and "cpu: " not in summary(report)
