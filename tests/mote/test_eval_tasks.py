"""`mote eval --tasks`: what lm-eval makes of a program file is what it makes of the checkpoint in transformers."""

from __future__ import annotations

import json
import math
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.demo import CHECKPOINT

pytest.importorskip("lm_eval", reason="lm-eval is not installed: .venv/bin/pip install '.[eval]'")
pytest.importorskip("accelerate", reason="lm-eval's class for transformers needs accelerate")

from lm_eval import simple_evaluate  # noqa: E402
from lm_eval.api.instance import Instance  # noqa: E402
from lm_eval.models.huggingface import HFLM  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402

from llm_runner import Model  # noqa: E402
from llm_runner.errors import ArgumentError, ProgramError  # noqa: E402
from mote.cli import main  # noqa: E402
from mote.harness.language_model import ProgramLM  # noqa: E402

CODE = "import os\n\n\ndef read(path):\n    with open(path) as file:\n        return file.read()\n"
CHOICES = [
    {"question": "What opens a file?", "choices": ["open", "close", "a dog", "seek and tell"], "answer": 0},
    {"question": "What is 2 + 2?", "choices": ["3", "4", "5", "22"], "answer": 1},
    {"question": "Which word begins a function?", "choices": ["func", "fn", "def", "function"], "answer": 2},
    {"question": "What ends a loop?", "choices": ["go", "break", "stop now", "loop"], "answer": 1},
    {"question": "The sky is", "choices": ["blue", "green", "made of cheese"], "answer": 0},
]
TASKS = {
    "mote_choice": (
        CHOICES,
        'output_type: multiple_choice\ndoc_to_text: "Question: {{question}}\\nAnswer:"\ndoc_to_target: answer\n'
        'doc_to_choice: "{{choices}}"\nfewshot_split: test\n'
        "metric_list: [{metric: acc}, {metric: acc_norm}]\n",
    ),
    "mote_copy": (
        [{"text": f"def {name}(self", "target": "):"} for name in ("__init__", "close", "size", "__len__")],
        'output_type: generate_until\ndoc_to_text: "{{text}}"\ndoc_to_target: target\n'
        'generation_kwargs: {until: ["\\n"], max_gen_toks: 12, do_sample: false, temperature: 0.0}\n'
        "metric_list: [{metric: exact_match}]\n",
    ),
    "mote_text": (
        [{"page": CODE}, {"page": CODE * 3 + "# The end.\n"}],
        'output_type: loglikelihood_rolling\ndoc_to_text: ""\ndoc_to_target: "{{page}}"\n'
        "metric_list: [{metric: word_perplexity}, {metric: byte_perplexity}, {metric: bits_per_byte}]\n",
    ),
}
PAIRS = [
    ("Question: what is 2 + 2?\nAnswer:", " 4"),
    ("Question: what is 2 + 2?\nAnswer:", " 5"),
    ("Question: what is 2 + 2?\nAnswer:", " four, of course"),
    ("Question: what is 2 + 2?\nAnswer: ", "4"),  # the space goes over to the continuation
    ("Question: what is 2 + 2?\nAnswer:  \n", "\nnothing"),
    ("", "import os"),
    ("", "<|im_end|> and on"),
    ("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n", "Hello!"),
    ("Größe ☃ 東京", " naïve 😀"),
    (CODE, CODE),
    (CODE * 3, "    return 0\n"),  # longer than the context in some tests
]
GENERATIONS = [
    ("def __init__(self", {"until": ["\n"], "max_gen_toks": 16}),
    ("def __init__(self", {"until": ["    "], "max_gen_toks": 24, "do_sample": False, "temperature": 0.0}),
    (CODE, {"until": ["return", "\n\n"], "max_gen_toks": 24}),
    ("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n", {"until": ["<|im_end|>"], "max_gen_toks": 24}),
    (CODE * 3, {"until": "never", "max_new_tokens": 8}),
]


def requests(kind: str, arguments: list[tuple]) -> list[Instance]:
    return [Instance(kind, {}, each, index) for index, each in enumerate(arguments)]


@pytest.fixture(scope="module", autouse=True)
def offline(tmp_path_factory):
    """Whatever asks for the network fails, and data sets leave nothing in the user's cache."""

    def refuse(*arguments):
        raise AssertionError(f"asks for the network: {arguments}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path_factory.mktemp("datasets"))
        patch.setattr(socket, "getaddrinfo", refuse)
        patch.setattr(socket.socket, "connect", refuse)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Tasks as a user has them: a YAML file and its data."""
    path = tmp_path_factory.mktemp("tasks")
    for name, (rows, about) in TASKS.items():
        data = path / f"{name}.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        source = (
            f"task: {name}\ndataset_path: json\ndataset_kwargs: {{data_files: {{test: {data}}}}}\ntest_split: test\n"
        )
        (path / f"{name}.yaml").write_text(source + about + "metadata: {version: 1.0}\n")
    return path


@pytest.fixture(scope="module")
def model(demo_files) -> Model:
    return Model.load(demo_files.path("none"))


def of_transformers(checkpoint: Path = CHECKPOINT, **options) -> HFLM:
    return HFLM(pretrained=str(checkpoint), device="cpu", dtype="float32", batch_size=1, **options)


def assert_scores_alike(found, expected):
    assert [greedy for _, greedy in found] == [greedy for _, greedy in expected]
    assert [score for score, _ in found] == pytest.approx([score for score, _ in expected], abs=1e-3)


def evaluated(capsys, *arguments: object) -> dict:
    with pytest.raises(SystemExit) as ended:
        main(["eval", *map(str, arguments), "--json"])
    captured = capsys.readouterr()
    assert ended.value.code == 0, captured.err
    assert captured.err == ""
    return json.loads(captured.out)


def refused(capsys, *arguments: object) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["eval", *map(str, arguments)])
    captured = capsys.readouterr()
    assert ended.value.code == 2 and "Traceback" not in captured.err and captured.out == ""
    return " ".join(captured.err.split())


@pytest.mark.parametrize("max_length", [None, 48])
def test_scores_are_those_of_transformers(model, max_length):
    found = ProgramLM(model, max_length)
    pairs = PAIRS if max_length is None else [pair for pair in PAIRS if pair != (CODE, CODE)]
    expected = of_transformers(max_length=max_length).loglikelihood(requests("loglikelihood", pairs), disable_tqdm=True)
    assert_scores_alike(found.loglikelihood(requests("loglikelihood", pairs)), expected)
    assert found.num_truncated == (0 if max_length is None else 1)


@pytest.mark.parametrize("max_length", [None, 32])
def test_scores_of_whole_texts_are_those_of_transformers(model, max_length):
    texts = requests("loglikelihood_rolling", [(CODE,), (CODE * 3,), ("",), ("x",)])
    expected = of_transformers(max_length=max_length).loglikelihood_rolling(texts, disable_tqdm=True)
    assert ProgramLM(model, max_length).loglikelihood_rolling(texts) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("max_length", [None, 48])
@pytest.mark.parametrize("together", [True, False])
def test_generations_are_those_of_transformers(monkeypatch, model, max_length, together):
    if not together:
        monkeypatch.setattr(Model, "batch", lambda *arguments, **options: generating_refuses())
    asked = requests("generate_until", GENERATIONS)
    expected = of_transformers(max_length=max_length).generate_until(asked, disable_tqdm=True)
    found = ProgramLM(model, max_length)
    assert found.generate_until(asked) == expected
    assert any(expected) and found.num_truncated == (0 if max_length is None else 1)


def generating_refuses():
    raise ProgramError("one after the other")


def test_samples_differ_and_come_again(model):
    asked = requests("generate_until", [("def ", {"do_sample": True, "temperature": 1.0, "max_gen_toks": 8})] * 3)
    found = ProgramLM(model).generate_until(asked)
    assert len(set(found)) > 1 and ProgramLM(model).generate_until(asked) == found


@pytest.fixture(scope="module")
def with_bos(tmp_path_factory) -> tuple[Path, Model]:
    """A checkpoint whose tokenizer begins every text with a BOS of its own, and its file."""
    from llm_export.api import export

    folder = tmp_path_factory.mktemp("bos")
    shutil.copytree(CHECKPOINT, folder / "checkpoint")
    path = folder / "checkpoint" / "tokenizer.json"
    fields = json.loads(path.read_text(encoding="utf-8"))
    bos = {"<|im_start|>": {"id": "<|im_start|>", "ids": [1], "tokens": ["<|im_start|>"]}}
    begin, text = {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    fields["post_processor"] = {
        "type": "TemplateProcessing", "single": [begin, text],
        "pair": [begin, text, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": bos,
    }  # fmt: skip
    path.write_text(json.dumps(fields), encoding="utf-8")
    config = folder / "checkpoint" / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"bos_token": "<|im_start|>"}))
    export(folder / "checkpoint", folder / "bos.mote", recipe="none", check="off")
    return folder / "checkpoint", Model.load(folder / "bos.mote")


def test_a_tokenizer_that_adds_bos_is_treated_as_with_transformers(with_bos):
    checkpoint, model = with_bos
    found, expected = ProgramLM(model), of_transformers(checkpoint)
    assert found.prefix_token_id == expected.prefix_token_id == 1
    for text in ("import os", "<|im_start|>user", ""):
        assert found.tok_encode(text) == expected.tok_encode(text)
    pairs = requests("loglikelihood", PAIRS)
    assert_scores_alike(found.loglikelihood(pairs), expected.loglikelihood(pairs, disable_tqdm=True))
    texts = requests("loglikelihood_rolling", [(CODE,)])
    assert found.loglikelihood_rolling(texts) == pytest.approx(
        expected.loglikelihood_rolling(texts, disable_tqdm=True), abs=1e-3
    )


@pytest.mark.parametrize("chat", [False, True])
def test_metrics_are_those_of_transformers(capsys, model, folder, chat):
    options = {"num_fewshot": 2, "limit": 4, "apply_chat_template": chat, "fewshot_as_multiturn": chat}
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    expected = simple_evaluate(of_transformers(), tasks=list(TASKS), task_manager=manager, **options)["results"]
    capsys.readouterr()
    arguments = ["--tasks", ",".join(TASKS), "--include-path", folder, "--num-fewshot", 2, "--limit", 4]
    found = evaluated(capsys, model.path, *arguments, *(["--apply-chat-template"] if chat else []))
    assert found["n-shot"]["mote_choice"] == 2 and found["num_truncated"] == 0
    for task in TASKS:
        metrics = {name: value for name, value in expected[task].items() if isinstance(value, float)}
        assert {name: found["results"][task][name] for name in metrics} == pytest.approx(metrics, rel=1e-4), task
    assert math.isfinite(found["results"]["mote_text"]["word_perplexity,none"])


def test_a_person_gets_a_table(capsys, model, folder):
    with pytest.raises(SystemExit):
        main(["eval", model.path, "--tasks", "mote_choice,mote_text", "--include-path", str(folder), "--context", "32"])
    captured = capsys.readouterr()
    lines = [line.split() for line in captured.out.splitlines()]
    assert lines[0] == ["task", "metric", "value", "stderr", "n-shot", "questions"]
    assert lines[1][:2] == ["mote_choice", "acc"] and lines[1][-2:] == ["0", "5"]
    assert "context of 32 tokens" in captured.out and captured.err == ""


def test_a_group_has_a_row_of_its_own(capsys, monkeypatch, model, folder, tmp_path):
    monkeypatch.setattr("mote.harness.tasks.TaskManager", of_folder_alone)
    about = "aggregate_metric_list: [{metric: acc, weight_by_size: true}]\nmetadata: {version: 1.0}\n"
    (tmp_path / "group.yaml").write_text(f"group: mote_all\ntask: [mote_choice]\n{about}")
    folders = ["--include-path", folder, "--include-path", tmp_path]
    found = evaluated(capsys, model.path, "--tasks", "mote_all", *folders)
    assert found["groups"]["mote_all"]["acc,none"] == found["results"]["mote_choice"]["acc,none"]
    with pytest.raises(SystemExit):
        main(["eval", model.path, "--tasks", "mote_all", *map(str, folders)])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:3]] == ["mote_all", "mote_choice"]


def test_a_prefix_can_be_given(model):
    texts = requests("loglikelihood_rolling", [(CODE,)])
    own, other = ProgramLM(model), ProgramLM(model, prefix_token_id=0)
    assert own.prefix_token_id == of_transformers().prefix_token_id
    expected = of_transformers(prefix_token_id=0).loglikelihood_rolling(texts, disable_tqdm=True)
    assert other.loglikelihood_rolling(texts) == pytest.approx(expected, abs=1e-3)
    assert other.loglikelihood_rolling(texts) != own.loglikelihood_rolling(texts)


def test_what_contexts_share_is_computed_once(monkeypatch, model):
    lm = ProgramLM(model)
    computed = []
    session_of = model.session

    def counting(**options):
        session = session_of(**options)
        for name in ("append", "verify"):
            call = getattr(session, name)
            monkeypatch.setattr(session, name, lambda ids, call=call: computed.append(len(ids)) or call(ids))
        return session

    monkeypatch.setattr(model, "session", counting)
    lm.loglikelihood(requests("loglikelihood", [(CODE, f" {choice}") for choice in "ABCD"]))
    assert sum(computed) == len(model.tokenize(CODE.rstrip("\n")))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--tasks", ","], "tasks = '': must be names"),
        (["--tasks", "mote_choice", "--context", "1"], "context = 1: must be in 2..2048"),
        (["--tasks", "mote_choice", "--include-path", "nowhere"], "include_path = 'nowhere': there is no such folder"),
        (["--tasks", "mote_copy", "--context", "8"], "max_gen_toks = 12: must be less than the context of 8 tokens"),
        (["--tasks", "mote_choice", "--prefix-token-id", "5000"], "prefix_token_id = 5000: must be in 0..4095"),
    ],
)
def test_bad_arguments(capsys, model, folder, arguments, expected):
    with_folder = [] if "nowhere" in arguments or "mote_" not in str(arguments) else ["--include-path", folder]
    assert expected in refused(capsys, model.path, *arguments, *with_folder)


def test_an_unknown_task_gets_the_closest(capsys, monkeypatch, model, folder):
    monkeypatch.setattr("mote.harness.tasks.TaskManager", of_folder_alone)
    said = refused(capsys, model.path, "--tasks", "mote_choise", "--include-path", folder)
    assert "tasks = 'mote_choise': there is no such task: did you mean 'mote_choice'" in said
    assert said.endswith("? --tasks list shows all")
    found = evaluated(capsys, model.path, "--tasks", "list", "--include-path", folder)
    assert found == sorted(TASKS)
    found = evaluated(capsys, model.path, "--tasks", "mote_c*", "--include-path", folder, "--limit", "0.5")
    assert set(found["results"]) == {"mote_choice", "mote_copy"}
    assert found["n-samples"]["mote_choice"]["effective"] == 3


def of_folder_alone(include_path, include_defaults=True) -> TaskManager:
    """The thousands of tasks that lm-eval brings take seconds to list."""
    return TaskManager(include_path=include_path, include_defaults=False)


def test_needs_neither_pytorch_nor_transformers(model, folder):
    arguments = [
        "eval",
        model.path,
        "--tasks",
        ",".join(TASKS),
        "--include-path",
        str(folder),
        "--limit",
        "1",
        "--json",
    ]
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print({'torch', 'transformers'} & set(sys.modules), file=sys.stderr))\n"
        f"from mote.cli import main; main({arguments})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and set(json.loads(done.stdout)["results"]) == set(TASKS), done.stderr
    assert done.stderr == "set()\n"


def test_a_data_set_that_cannot_be_had(capsys, model, tmp_path):
    about = "task: mote_far\ndataset_path: no-such-org/no-such-set\ntest_split: test\noutput_type: multiple_choice\n"
    (tmp_path / "far.yaml").write_text(about + "doc_to_text: x\ndoc_to_target: 0\ndoc_to_choice: [a, b]\n")
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    command = [sys.executable, "-m", "mote.cli", "eval", model.path, "--tasks", "mote_far", "--include-path", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    said = " ".join(done.stderr.split())
    assert done.returncode == 2 and said.startswith("error: tasks = 'mote_far': a data set is neither here nor"), said
    assert "no-such-org/no-such-set" in said and done.stdout == ""


def test_what_lm_eval_refuses_is_one_paragraph(capsys, model, folder, tmp_path):
    source = (folder / "mote_choice.yaml").read_text().replace("{metric: acc}", "{metric: acc, aggregation: none_such}")
    (tmp_path / "bad.yaml").write_text(source)
    said = refused(capsys, model.path, "--tasks", "mote_choice", "--include-path", tmp_path)
    assert said.startswith("error: tasks = 'mote_choice': lm-eval says: ") and "--debug shows where" in said


def test_a_continuation_without_tokens(model):
    with pytest.raises(ArgumentError, match="a continuation of 0 tokens, '': must have 1..2048"):
        ProgramLM(model)._loglikelihood_tokens([(("a", ""), [1], [])])


def test_a_file_without_a_chat_template(capsys, monkeypatch, model):
    monkeypatch.setattr(Model, "chat_template", "")
    assert "no chat template" in refused(capsys, model.path, "--tasks", "mote_choice", "--apply-chat-template")
