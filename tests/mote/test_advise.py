"""`mote advise`: of a file, of its beginning, of a config alone."""

import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path

from llm_export.api import export, outline
from mote.arguments import checkpoint_index
from mote.commands import runner_binary

ROOT = Path(__file__).parents[2]
CHECKPOINT = ROOT / "examples" / "demo"


def advise(*words: object, status: int = 0) -> str:
    done = subprocess.run([sys.executable, "-m", "mote", "advise", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else " ".join(done.stderr.split())


def end_of_program(file: Path) -> int:
    (program_bytes,) = struct.unpack_from("<Q", file.read_bytes()[:64], 16)
    return 64 + program_bytes


def config_alone(folder: Path) -> Path:
    folder.mkdir()
    shutil.copy(CHECKPOINT / "config.json", folder)
    return folder


def test_a_beginning_is_as_good_as_a_file(tmp_path, demo_files):
    file, part = Path(demo_files.path()), tmp_path / "demo.mote.part"
    part.write_bytes(file.read_bytes()[: end_of_program(file)])
    whole, beginning = json.loads(advise(file, "--json")), json.loads(advise(part, "--json"))
    for name in ("file_bytes", "state_bytes", "working_bytes", "context_length"):
        assert whole[name] == beginning[name], name
    assert whole["file_bytes"] == file.stat().st_size
    assert min(beginning["prefill_tokens_per_second"], beginning["decode_tokens_per_second"]) > 0
    assert "tokens/s, a prompt of 256" in advise(part)
    part.write_bytes(part.read_bytes()[:-1])
    assert f"the program ends at byte {end_of_program(file)}" in advise(part, status=2)


def test_a_config_is_the_file_that_export_would_write(tmp_path):
    written = tmp_path / "written.mote"
    export(CHECKPOINT, written, tokenizer=False, check="off", show_progress=False)
    outlined = tmp_path / "outlined.mote"
    outline(config_alone(tmp_path / "demo"), outlined)
    assert struct.unpack_from("<Q", outlined.read_bytes(), 24) == (written.stat().st_size,)
    found = json.loads(advise(tmp_path / "demo", "--json", "-p", 16, "-d", 16, "--kv-dtype", "int8"))
    assert found["file_bytes"] == written.stat().st_size and found["file"] == "demo.mote"
    assert found["state_bytes"] < json.loads(advise(written, "--json", "-p", 16, "-d", 16))["state_bytes"]


def test_what_is_no_checkpoint_is_left_to_the_runner(tmp_path, store_home):
    runner = runner_binary()
    assert checkpoint_index(["--json", "org/raw"], runner) == 1
    assert checkpoint_index([str(tmp_path), "-p", "16"], runner) == 0
    for words in (["x.mote"], ["--json", str(ROOT / "out" / "demo.mote")], ["org/raw", "--help"], []):
        assert checkpoint_index(words, runner) is None


def test_bad_input(tmp_path):
    assert "no model.safetensors" not in advise(tmp_path, status=2)
    assert "depth = 5000: must be 1.." in advise(ROOT / "out" / "demo.mote", "-d", 5000, status=2)
