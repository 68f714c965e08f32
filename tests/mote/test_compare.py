"""`mote compare`: numeric gaps between files, backends and the checkpoint, and between profiles."""

from __future__ import annotations

import json
import math
import shutil

import click
import numpy as np
import pytest

from llm_runner import Model
from llm_runner.errors import ArgumentError, FileError
from mote.cli import main
from mote.comparison import profiles, report
from mote.comparison.differences import compare_files, compare_modules
from mote.comparison.gaps import Gap, LogitsGap
from mote.comparison.methods import method_of
from mote.comparison.pairs import pair_values
from mote.comparison.runs import Run
from mote.comparison.tables import table
from tests.demo import CHECKPOINT
from tests.llm_export.program_reader import read_program

TEXT = "def add(a, b):\n    return a + b\n\n\nclass Point:\n    def __init__(self, x, y):\n        self.x = x\n"
DAMAGED = "model.layers.3.mlp.down_proj"


@pytest.fixture(scope="module")
def quantized(demo_files):
    return demo_files.path()


@pytest.fixture(scope="module")
def plain(demo_files):
    return demo_files.path("none")


@pytest.fixture(scope="module")
def ids(plain) -> list[int]:
    return Model.load(plain).tokenize(TEXT)[:24]


@pytest.fixture(scope="module")
def of_recipes(plain, quantized, ids):
    return compare_files(Run(str(plain)), Run(str(quantized)), ids)


def test_a_file_is_equal_to_itself(quantized, ids):
    found = compare_files(Run(str(quantized)), Run(str(quantized)), ids)
    method = method_of(found_about(quantized), "verify")
    assert len(found.rows) == sum(len(each.outputs) for each in method.computed())
    assert all(row.gap.relative == 0 and row.gap.max_abs == 0 and row.own.relative == 0 for row in found.rows)
    assert all(row.gap.elements > 0 and row.gap.cosine == pytest.approx(1) for row in found.rows)
    assert found.logits.as_json() == {"kl_divergence": 0, "top1_agreement": 1, "max_relative_error": 0}
    assert found.first_beyond(0) is None
    assert list(found.unmatched_first) == list(found.unmatched_second) == []
    assert "equal to the bit" in report.as_text(found, 0)


def found_about(path) -> dict:
    return Model.load(path).describe()


def test_errors_come_in_where_weights_are_quantized(of_recipes, quantized):
    assert of_recipes.logits.kl > 0
    assert of_recipes.first_beyond(1e-5).instruction.op == "mote.embedding"
    formats = {each["name"]: each["format"] for each in found_about(quantized)["weights"]["tensors"]}

    def bits(row) -> int:
        names = ["+".join(each) for each in row.instruction.weights]
        return min((int(formats[name][3]) for name in names if formats[name].startswith("int")), default=32)

    own = {4: [], 8: [], 32: []}
    for row in of_recipes.rows:
        own[bits(row)].append(row.own.relative)
    assert min(own[4]) > 2 * max(own[8]) > 0
    assert max(own[32]) < 1e-5
    layers = report.last_of_layers(of_recipes.rows)
    first = next(row for name, row in layers if name == "model.layers.0")
    last = next(row for name, row in layers if name == "model.layers.5")
    assert 0 < first.gap.relative < last.gap.relative < 1


def test_a_damaged_weight_is_found(plain, tmp_path, ids):
    damaged = tmp_path / "damaged.mote"
    shutil.copy(plain, damaged)
    program = read_program(plain)
    place = next(i for i, spec in enumerate(program.weights) if spec.name == f"{DAMAGED}.weight")
    start = next(each.offset for each in program.segments if each.kind == "weights") + program.weight_offsets[place]
    with open(damaged, "r+b") as file:
        file.seek(start)
        file.write(np.full(64, 0.5, np.float32).tobytes())
    found = compare_files(Run(str(plain)), Run(str(damaged)), ids)
    first = found.first_beyond(1e-5)
    assert [f"{DAMAGED}.weight"] in [list(names) for names in first.instruction.weights]
    assert found.largest_own() is first
    assert {row.instruction.index for row in found.rows if row.own.relative > 1e-5} == {first.instruction.index}
    assert all(row.gap.relative == 0 for row in found.rows if row.instruction.index < first.instruction.index)
    text = click.unstyle(report.as_text(found, 1e-5))
    assert DAMAGED in text and max(map(len, text.splitlines())) <= 80


def test_a_float_file_computes_what_the_modules_of_the_checkpoint_do(plain, ids):
    from llm_export.check.module_values import module_values, open_oracle

    modules, logits = module_values(open_oracle(str(CHECKPOINT)), ids)
    found = compare_modules(Run(str(plain)), ids, modules, logits, "checkpoint")
    assert max(row.gap.relative for row in found.rows) < 1e-4
    assert found.logits.max_relative < 1e-4
    seen = {row.what for row in found.rows}
    for layer in range(6):
        names = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.q_norm")
        assert {f"output model.layers.{layer}.{name}" for name in names} <= seen
        assert {f"output model.layers.{layer}", f"input model.layers.{layer}.mlp.down_proj"} <= seen
    assert {"output model.embed_tokens", "output lm_head"} <= seen


def test_values_that_leave_a_part_of_a_backend_find_their_counterparts(demo_files):
    about = found_about(demo_files.path(backends="xnnpack,cpu"))
    methods = {}
    for target in about["targets"]:
        methods[target] = method_of(about | {"target": target}, "decode")
    pairs = pair_values(methods["cpu"], methods["xnnpack"])
    borders = [each for each in methods["xnnpack"].instructions if each.op == "mote.delegate"]
    assert borders
    matched = set(pairs.values.values())
    assert all(set(each.outputs) <= matched for each in borders)
    assert [each for each in pairs.unmatched_second if each.op != "mote.delegate"] == []


def test_files_of_other_models_are_refused(of_recipes, plain, quantized):
    first, second = Run(str(plain)), Run(str(quantized))
    second.about = second.about | {"vocab_size": 7}
    with pytest.raises(ArgumentError, match="vocab_size = 7"):
        compare_files(first, second, [1, 2])
    second.about = first.about | {"states": first.about["states"][:-1]}
    with pytest.raises(ArgumentError, match="other layers"):
        compare_files(first, second, [1, 2])


def test_the_verb_reads_a_text_or_a_file_of_it(capsys, quantized, plain, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    outputs = []
    for text in (TEXT, str(tmp_path / "text.txt")):
        arguments = ["compare", str(plain), str(quantized), "--text", text, "--json", "--max-tokens", "5"]
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 0
        outputs.append(json.loads(capsys.readouterr().out))
    assert outputs[0] == outputs[1]
    assert outputs[0]["tokens"] == 5
    assert outputs[0]["first_difference"]["origin"] == "model.embed_tokens"
    assert {row["layer"] for row in outputs[0]["by_layer"]} >= {f"model.layers.{layer}" for layer in range(6)}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["FILE", "--text", "a"], "two backends"),
        (["FILE", "FILE"], "--text"),
        (["FILE", "FILE", "FILE", "--text", "a"], "give two .mote files"),
        (["FILE", "FILE", "--text", ""], "no tokens"),
        (["FILE", "FILE", "--text", "a", "--checkpoint", "x"], "--checkpoint"),
        (["FILE", "--backend", "cpu,npu", "--text", "a"], "npu"),
        (["FILE", "--profiles"], "two files"),
        (["FILE", "FILE", "--profiles"], "JSON"),
    ],
)
def test_bad_input_is_named(capsys, quantized, arguments, named):
    with pytest.raises(SystemExit) as caught:
        main(["compare", *(str(quantized) if word == "FILE" else word for word in arguments)])
    assert caught.value.code == 2
    assert named in " ".join(capsys.readouterr().err.split())


def test_gaps_are_those_of_their_definitions():
    gap = Gap()
    gap.add(np.array([3.0, 4.0], np.float32), np.array([3.0, 4.5], np.float32))
    gap.add(np.array([0.0], np.float32), np.array([0.0], np.float32))
    assert gap.relative == pytest.approx(0.1)
    assert gap.snr_db == pytest.approx(20)
    assert gap.max_abs == 0.5
    assert gap.cosine == pytest.approx(27 / (5 * math.hypot(3, 4.5)))
    broken = Gap()
    broken.add(np.ones(2), np.array([1.0, math.nan]))
    assert broken.relative == math.inf
    assert broken.as_json()["relative"] is None


def test_the_gap_of_logits_is_the_divergence_of_their_distributions():
    gap = LogitsGap()
    gap.add(np.log(np.array([[0.5, 0.25, 0.25]])), np.log(np.array([[0.25, 0.5, 0.25]])) + 3)
    assert gap.as_json()["kl_divergence"] == pytest.approx(0.25 * math.log(2))
    assert gap.as_json()["top1_agreement"] == 0


def trace(ops: dict[str, list[float]], tokens: int = 4) -> dict:
    events, at = [{"ph": "M", "name": "thread_name"}], 0.0
    for op, times in ops.items():
        for time in times:
            events.append({"ph": "X", "cat": "op", "name": op, "ts": at, "dur": time, "args": {"macs": 10}})
            at += time
    call = {"ph": "X", "cat": "call", "name": "prefill", "ts": 0.0, "dur": at, "args": {"tokens": tokens}}
    return {"traceEvents": [call, *events], "otherData": {"model": "a.mote"}}


def written(path, content) -> profiles.Profile:
    path.write_text(json.dumps(content))
    return profiles.read_profile(str(path))


def test_profiles_are_compared_op_by_op(tmp_path):
    first = written(tmp_path / "a.json", trace({"mote.linear": [10, 20], "mote.rope": [5], "aten.add": [1]}))
    second = written(tmp_path / "b.json", trace({"mote.linear": [10, 5], "mote.rope": [6], "aten.mul": [2]}))
    (test,) = profiles.as_json(first, second)["tests"]
    assert [row["op"] for row in test["ops"]] == ["mote.linear", "aten.mul", "mote.rope", "aten.add"]
    linear = test["ops"][0]
    assert linear["ratio"] == pytest.approx(0.5)
    assert linear["change_seconds"] == pytest.approx(-15e-6)
    assert linear["first_share"] == pytest.approx(30 / 36)
    assert test["ops"][1]["first_seconds"] is None and test["ops"][3]["second_seconds"] is None
    assert test["call"]["ratio"] == pytest.approx(23 / 36)
    assert test["notes"] == []
    assert max(map(len, click.unstyle(profiles.as_text(first, second)).splitlines()[3:])) <= 80


def test_profiles_of_other_work_are_refused_or_said(tmp_path):
    first = written(tmp_path / "a.json", trace({"mote.linear": [10]}))
    with pytest.raises(ArgumentError, match="prefill of 4 tokens.*prefill of 8 tokens"):
        profiles.as_json(first, written(tmp_path / "b.json", trace({"mote.linear": [10]}, tokens=8)))
    other = written(tmp_path / "c.json", trace({"mote.linear": [10, 10]}))
    (test,) = profiles.as_json(first, other)["tests"]
    assert test["notes"] == [
        "mote.linear: 1 a call in the first, 2 in the second",
        "multiply-accumulates a call: 10 and 20: other models, or other work",
    ]
    for content in ({"traceEvents": []}, {"results": []}, [1]):
        with pytest.raises(FileError, match="d.json"):
            written(tmp_path / "d.json", content)


def test_profiles_of_the_runner_are_read(quantized, tmp_path):
    session = Model.load(quantized).session(context_length=16)
    session.start_profile()
    session.prefill([1, 2, 3, 4])
    session.decode(5)
    profile = written(tmp_path / "a.json", session.stop_profile())
    assert list(profile.tests) == ["prefill of 4 tokens", "decode"]
    rows = profiles.as_json(profile, profile)["tests"][1]["ops"]
    assert {row["ratio"] for row in rows} == {1.0}
    decode = method_of(found_about(quantized), "decode")
    assert sum(profile.tests["decode"].counts.values()) == len(list(decode.computed()))


def test_reports_of_bench_are_read(tmp_path):
    op = {"name": "mote.linear", "count": 38, "seconds": 2e-3, "macs": 4e6}
    test = {"method": "prefill", "tokens": 16, "depth": 32, "calls": 2, "seconds": 4e-3, "by_op": [op]}
    profile = written(tmp_path / "a.json", {"file": "a.mote", "results": [], "profile": {"tests": [test]}})
    assert list(profile.tests) == ["prefill of 16 tokens behind 32"]
    (row,) = profiles.as_json(profile, profile)["tests"][0]["ops"]
    assert row["first_seconds"] == pytest.approx(1e-3)
    assert row["first_share"] == pytest.approx(0.5)


def test_tables_fit_80_columns():
    text = click.unstyle(table(["name", "a", "b"], [["model.layers.0." * 8, "1" * 10, "2" * 10]]))
    assert max(map(len, text.splitlines())) <= 80
    assert "".join(line.split()[0] for line in text.splitlines()[1:]) == "model.layers.0." * 8
