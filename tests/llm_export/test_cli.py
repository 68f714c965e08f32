"""The command `mote`: help, bad input, exit status, and no traceback unless asked for."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from llm_export import api
from llm_export.capture import architectures, capture
from llm_export.errors import UnsupportedError
from mote.cli import cli, main
from tests.contracts.architectures import save_tiny_checkpoint
from tests.llm_export.program_reader import read_program

DEMO = Path(__file__).parents[2] / "examples" / "demo"


def fails(capsys, *arguments, status=2) -> str:
    """Runs `mote`, which must fail with `status`, and returns what it says."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert caught.value.code == status, captured.err
    assert "Traceback" not in captured.err
    return " ".join(captured.err.split())


@pytest.fixture
def checkpoint(tmp_path):
    """A copy of the demo's small files, the weights linked."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    for path in DEMO.iterdir():
        if path.suffix == ".safetensors":
            (folder / path.name).symlink_to(path)
        else:
            (folder / path.name).write_bytes(path.read_bytes())
    return folder


def edit_config(folder, **fields):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize("verb", list(cli.commands))
def test_every_verb_has_a_line_of_help(capsys, verb):
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.strip().startswith(verb))
    assert len(line.split()) > 3


@pytest.mark.parametrize("verb", ["export", "eval"])
def test_help_has_an_example(capsys, verb):
    with pytest.raises(SystemExit) as caught:
        main([verb, "--help"])
    assert caught.value.code == 0
    assert f"mote {verb} " in capsys.readouterr().out


def test_unknown_verb_suggests_one(capsys):
    assert "there is no verb 'exprot': did you mean 'export'?" in fails(capsys, "exprot")


def test_unknown_option_suggests_one(capsys):
    said = fails(capsys, "export", DEMO, "--recip", "8w")
    assert "there is no option '--recip': did you mean '--recipe'?" in said


def test_missing_checkpoint(capsys, tmp_path):
    assert "no such folder, and not a hub id" in fails(capsys, "export", tmp_path / "nothing" / "there" / "x")


def test_folder_without_config(capsys, tmp_path):
    assert "config.json" in fails(capsys, "export", tmp_path, "-o", tmp_path / "x.mote")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--recipe", "8da4"], "Did you mean '8da4w'?"),
        (["--group-size", "48"], "must be one of 32, 64, 128, 256, channel"),
        (["--embedding-bits", "1"], "must be 2 to 8"),
        (["--override", "nothing"], "PATTERN=SCHEME"),
        (["--override", "model.layer.0.*=8w", "--check", "off"], "Did you mean 'model.layers.0"),
        (["--check", "some"], "full"),
        (["--calibration", "no-such.txt"], "no-such.txt: cannot be read"),
        (["--calibration", "default", "--recipe", "none"], "must be another recipe"),
        (["--target-bits", "12"], "at most 9 bits"),
        (["--target-bits", "few"], "few"),
    ],
)
def test_bad_arguments(capsys, tmp_path, arguments, expected):
    output = tmp_path / "x.mote"
    assert expected in fails(capsys, "export", DEMO, "-o", output, *arguments)
    assert list(tmp_path.iterdir()) == []


def test_truncated_weights(capsys, checkpoint, tmp_path):
    weights = checkpoint / "model.safetensors"
    data = weights.read_bytes()
    weights.unlink()
    weights.write_bytes(data[: len(data) // 2])
    text = fails(capsys, "export", checkpoint, "-o", tmp_path / "x.mote")
    assert "model.safetensors" in text and "not a whole safetensors file" in text
    assert not list(tmp_path.glob("*.mote*"))


def test_shapes_that_disagree_with_the_config(capsys, checkpoint, tmp_path):
    edit_config(checkpoint, intermediate_size=640)
    text = fails(capsys, "export", checkpoint, "-o", tmp_path / "x.mote")
    assert "mlp" in text and "config.json asks for" in text
    assert not list(tmp_path.glob("*.mote*"))


@pytest.mark.parametrize("model_type", ["t5", "bert", "no_such_model"])
def test_unsupported_architecture(capsys, checkpoint, tmp_path, model_type):
    edit_config(checkpoint, model_type=model_type)
    assert model_type in fails(capsys, "export", checkpoint, "-o", tmp_path / "x.mote")


def test_tokenizer_of_an_unknown_kind(capsys, checkpoint, tmp_path):
    tokenizer = checkpoint / "tokenizer.json"
    tokenizer.write_text(json.dumps(json.loads(tokenizer.read_text()) | {"model": {"type": "Oracle", "vocab": {}}}))
    text = fails(capsys, "export", checkpoint, "-o", tmp_path / "x.mote")
    assert "tokenizer" in text and "--no-tokenizer" in text
    assert not list(tmp_path.glob("*.mote*"))
    with pytest.raises(SystemExit) as caught:
        main(["export", str(checkpoint), "-o", str(tmp_path / "x.mote"), "--check", "off", "--no-tokenizer", "--json"])
    assert not caught.value.code
    report = json.loads(capsys.readouterr().out)
    assert report["bytes"] == (tmp_path / "x.mote").stat().st_size
    assert report["check"] is None and {row["num_delegated"] for row in report["delegated"]} == {0}
    assert read_program(tmp_path / "x.mote").metadata.tokenizer == b""


def test_tokenizer_of_another_folder(capsys, checkpoint, tmp_path):
    (checkpoint / "tokenizer.json").rename(tmp_path / "tokenizer.json")
    arguments = ["export", checkpoint, "-o", tmp_path / "x.mote", "--check", "off", "--tokenizer", tmp_path]
    refused = fails(capsys, *arguments, "--no-tokenizer")  # wrapped at hyphens too
    assert "and--no-tokenizer:mustbeoneofthem" in "".join(refused.split())
    with pytest.raises(SystemExit) as caught:
        main([*map(str, arguments), "--json"])
    assert not caught.value.code
    assert read_program(tmp_path / "x.mote").metadata.tokenizer != b""


def test_damaged_tokenizer_of_another_kind(capsys, checkpoint, tmp_path):
    (checkpoint / "tokenizer.json").unlink()
    (checkpoint / "tokenizer.model").write_bytes(b"x")
    text = fails(capsys, "export", checkpoint, "-o", tmp_path / "x.mote")
    assert "tokenizer.model" in text and "--no-tokenizer" in text


def test_output_in_a_folder_that_is_not_there(capsys, tmp_path):
    text = fails(capsys, "export", DEMO, "-o", tmp_path / "nowhere" / "x.mote")
    assert "nowhere/x.mote: cannot be written" in text


def test_output_that_is_a_folder(capsys, tmp_path):
    assert "is a folder" in fails(capsys, "export", DEMO, "-o", tmp_path)


def test_output_that_is_a_pipe(capsys, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    text = fails(capsys, "export", DEMO, "-o", tmp_path / "pipe")
    assert "pipe: is a named pipe: must be a regular file, or the name of a new one" in text


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["export", "--help"]])
def test_output_that_cannot_be_written_is_told(arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mote", *arguments], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 3
    assert done.stderr == "error: standard output cannot be written: No space left on device\n"


def test_a_closed_pipe_is_no_error_and_says_nothing():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-m", "mote", "--help"], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert done.returncode == 141
    assert done.stderr == b""


def test_debug_shows_the_traceback(tmp_path):
    from llm_export.errors import FileError

    with pytest.raises(FileError):
        main(["export", str(tmp_path), "-o", str(tmp_path / "x.mote"), "--debug"])


@pytest.mark.parametrize("verb", ["run", "chat", "bench", "inspect", "verify"])
def test_runner_verbs_import_neither_torch_nor_the_library(verb):
    code = (
        "import os, sys; os.execv = lambda path, arguments: print(arguments[1:], 'torch' in sys.modules, "
        f"'llm_runner' in sys.modules)\nfrom mote.cli import main\n"
        f"main(['{verb}', 'm.mote', '--help', '-p', 'x'])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == f"['{verb}', 'm.mote', '--help', '-p', 'x'] False False", result.stderr


def test_eval_of_a_missing_file(capsys, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("hello")
    assert "missing.mote" in fails(capsys, "eval", tmp_path / "missing.mote", "--text", text)


def test_eval_of_text_that_is_not_utf8(capsys, tmp_path):
    text = tmp_path / "text.txt"
    text.write_bytes(b"abc\xff")
    assert "not UTF-8 text (byte 3)" in fails(capsys, "eval", tmp_path / "missing.mote", "--text", text)


AS_IT_IS = """
import logging
from mote.cli import main
logging.disable(logging.WARNING)  # of PyTorch while it is imported
from llm_export.capture.architectures import dbrx
logging.disable(logging.NOTSET)
dbrx.patch = lambda model, context: None
main()
"""


def test_a_refusal_is_all_that_is_said(tmp_path):
    save_tiny_checkpoint("dbrx", tmp_path / "dbrx")  # as it is, torch.export gives up and prints the graph so far
    run = [sys.executable, "-c", AS_IT_IS, "export", "dbrx"]
    refused = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == 2 and refused.stdout == ""
    sentence = r"error: model type 'dbrx' cannot be exported: torch.export stops at modeling_dbrx\.py:\d+ .{,400}\n"
    assert re.fullmatch(sentence, refused.stderr, re.DOTALL), refused.stderr
    assert "def forward" not in refused.stderr


def test_debug_shows_what_pytorch_printed(tmp_path, monkeypatch):
    save_tiny_checkpoint("dbrx", tmp_path)
    monkeypatch.setattr(architectures.find("dbrx"), "patch", lambda model, context: None)
    monkeypatch.setattr(api, "capture", capture)  # not one that another test's export has left
    with pytest.raises(UnsupportedError) as caught:
        main(["export", str(tmp_path), "--debug"])
    assert any("torch.ops.aten" in note for note in caught.value.__cause__.__notes__)


def test_eval_tells_what_a_smaller_cache_costs(capsys, tmp_path, demo_files):
    text = tmp_path / "text.txt"
    text.write_text("import os\n\n\ndef read(path):\n    with open(path) as file:\n        return file.read()\n" * 4)
    found = {}
    for kv_dtype in ("float32", "int8", "int4"):
        with pytest.raises(SystemExit) as ended:
            main(["eval", str(demo_files.path()), "--text", str(text), "--kv-dtype", kv_dtype, "--json"])
        assert ended.value.code == 0
        found[kv_dtype] = json.loads(capsys.readouterr().out)
        assert found[kv_dtype]["kv_dtype"] == kv_dtype
    exact, eight, four = (found[name]["perplexity"] for name in ("float32", "int8", "int4"))
    assert eight == pytest.approx(exact, rel=0.05) and eight != exact and four == pytest.approx(exact, rel=0.5)
    assert "int2" in fails(capsys, "eval", demo_files.path(), "--text", text, "--kv-dtype", "int2")
