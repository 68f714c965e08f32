"""Calls of the system and allocations that fail, one after another, until there is none left."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.soak.figures import ROOT, Figure, Size, last_lines, run

RUNNER = ROOT / "build" / "dev" / "runner" / "cli" / "mote-runner"
ALLOCATIONS = ROOT / "build" / "asan" / "tests" / "runner" / "capi" / "test_allocation_failure"
SHORT = -1  # in place of an errno: half of the bytes
FAULTS = {
    "open": [errno.EMFILE, errno.EACCES, errno.EIO],
    "read": [errno.EIO, errno.EINTR, SHORT],
    "mmap": [errno.ENOMEM, errno.ENODEV],
    "stat": [errno.EIO],
    "write": [errno.ENOSPC, errno.EIO, errno.EINTR, SHORT],
    "sync": [errno.EIO, errno.ENOSPC],
    "truncate": [errno.ENOSPC],
    "rename": [errno.EIO, errno.EACCES],
}
TRANSPARENT = {errno.EINTR, SHORT}  # are no failures: the call is made again
OLD = b"what was there before"


def failing_allocations(size: Size) -> list[Figure]:
    """R10: each allocation from opening to tokens fails in turn, alone and with all after it; under the sanitizers."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        done = run([ALLOCATIONS, f"--gtest_output=json:{report}"])
        tests = [test for suite in json.loads(report.read_text())["testsuites"] for test in suite["testsuite"]]
    if done.returncode != 0:
        print(last_lines(done, 40))
    counts = [int(test["allocations"]) for test in tests if "allocations" in test]
    found = f"{sum(counts):,} failed in turn: an error each, nothing leaked, the next call works"
    return [Figure("R10", "opening, prompt, tokens, forks", found, done.returncode == 0 and len(counts) == 2)]


def failing_calls(size: Size) -> list[Figure]:
    """R11: each call on the model's and the output's files fails in turn, in the runner and in an export."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "failing_calls.so"
        built = run(["cc", "-shared", "-fPIC", "-O1", "-o", library, ROOT / "scripts/soak/failing_calls.c", "-ldl"])
        if built.returncode != 0:
            sys.exit(last_lines(built))
        return [
            _runner(Path(folder), library, "run, save the session", ["--save-session", "OUT"], size),
            _runner(Path(folder), library, "run with --no-mmap", ["--no-mmap"], size),
            _runner(Path(folder), library, "run, restore a session", ["--load-session", "KEPT"], size),
            _runner(Path(folder), library, "run, write a trace", ["--profile", "OUT"], size),
            _export(Path(folder), library, size),
        ]


def _runner(folder: Path, library: Path, what: str, options: list[str], size: Size) -> Figure:
    work = folder / re.sub(r"\W+", "-", what)
    work.mkdir()
    model, kept, out = work / "model.mote", work / "kept", work / "out"
    model.write_bytes(size.model.read_bytes())
    command = [RUNNER, "run", model, "def f(", "--raw", "-n", "4", "--temperature", "0"]
    run([*command, "--save-session", kept])
    command += [{"OUT": out, "KEPT": kept}.get(word, word) for word in options]
    undisturbed = run(command)
    if undisturbed.returncode != 0:
        sys.exit(f"{what}: {last_lines(undisturbed)}")
    expected = undisturbed.stdout
    names = {path.name for path in work.iterdir()}
    whole = out.read_bytes() if out.exists() else None

    def once(call: str, at: int, error: int) -> int:
        report = folder / "count"
        report.unlink(missing_ok=True)
        if whole is not None:
            out.write_bytes(OLD)
        told = {"SOAK_UNDER": str(work), "SOAK_CALL": call, "SOAK_AT": str(at), "SOAK_ERROR": str(error)}
        done = run(command, LD_PRELOAD=str(library), SOAK_REPORT=str(report), **told)
        reached = int(report.read_text() or 0) if report.exists() else 0
        if reached >= at:
            _judge(done, expected, error, f"{call} {at} {_name(error)}")
            left = {path.name for path in work.iterdir()} - names
            assert not left, f"{call} {at} {_name(error)}: leaves {left}"
            if whole is not None and done.returncode != 0 and "--profile" not in options:
                assert out.read_bytes() == OLD, f"{call} {at} {_name(error)}: a part of the output is there"
        return reached

    return _exhausted(what, once, size)


def _judge(done: subprocess.CompletedProcess[str], expected: str, error: int, where: str) -> None:
    if error in TRANSPARENT:
        assert (done.returncode, done.stdout) == (0, expected), f"{where}: {done.returncode} {done.stderr[-200:]}"
        return
    assert 0 <= done.returncode < 128, f"{where}: ended by a signal: {done.returncode} {done.stderr[-200:]}"
    if done.returncode == 0:
        assert done.stdout == expected, f"{where}: another text"
    else:
        assert done.stderr.strip(), f"{where}: status {done.returncode} without a message"


def _name(error: int) -> str:
    return "half of the bytes" if error == SHORT else errno.errorcode[error]


def _exhausted(what: str, once, size: Size) -> Figure:
    """Lets call after call fail until one is not reached."""
    faults, step = 0, max(1, round(0.2 / size.share))
    try:
        for call, errors in FAULTS.items():
            for error in errors:
                at = 1
                while once(call, at, error) >= at:
                    faults += 1
                    at += 1 if at < 20 else step
    except AssertionError as difference:
        return Figure("R11", what, str(difference)[:160], False)
    return Figure("R11", what, f"{faults} faults: an error or no difference; the old file or the whole new one", True)


def _export(folder: Path, library: Path, size: Size) -> Figure:
    """In a process of its own, which imports everything once and then forks for each fault."""
    command = [sys.executable, "-m", "scripts.soak.faults", folder, str(size.share)]
    done = run(command, LD_PRELOAD=str(library), SOAK_LIBRARY=str(library))
    if done.returncode != 0:
        print(last_lines(done, 40))
        return Figure("R11", "export", f"the export's faults could not be run: {last_lines(done, 1)}", False)
    row = json.loads(done.stdout.splitlines()[-1])
    return Figure(**row)


def _export_faults(folder: Path, size: Size) -> Figure:
    import torch
    from transformers import LlamaConfig

    from llm_export.api import export
    from llm_export.errors import MoteError
    from tests.contracts.tokenizer import save_tiny_tokenizer
    from tests.llm_export.tiny import save_tiny

    torch.set_num_threads(1)
    library = ctypes.CDLL(os.environ["SOAK_LIBRARY"])
    library.soak_count.restype = ctypes.c_long
    work = folder / "export"
    checkpoint, outputs = work / "checkpoint", work / "outputs"
    outputs.mkdir(parents=True)
    shape = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 64}
    save_tiny(LlamaConfig(vocab_size=108, hidden_size=32, **shape), checkpoint)
    save_tiny_tokenizer(checkpoint)
    out = outputs / "model.mote"

    def child(call: str, at: int, error: int, write: int) -> None:
        library.soak_arm(str(work).encode(), call.encode(), ctypes.c_long(at), error)
        told = ""
        try:
            export(checkpoint, out, show_progress=False, check="off")
        except MoteError as refused:
            told = f"refused {refused}"
        except BaseException as other:
            told = f"raised {type(other).__name__}: {other}"
        count = library.soak_count()
        library.soak_arm(b"", b"", 0, 0)
        os.write(write, json.dumps([count, told]).encode())
        os._exit(0)

    def once(call: str, at: int, error: int) -> int:
        out.write_bytes(OLD)
        read, write = os.pipe()
        if (pid := os.fork()) == 0:
            os.close(read)
            child(call, at, error, write)
        os.close(write)
        answer = b"".join(iter(lambda: os.read(read, 65536), b""))
        os.close(read)
        status = os.waitpid(pid, 0)[1]
        where = f"{call} {at} {_name(error)}"
        assert status == 0 and answer, f"{where}: ended with {status}"
        count, told = json.loads(answer)
        assert not told.startswith("raised"), f"{where}: {told}"
        assert error not in TRANSPARENT or not told, f"{where}: {told}"
        assert os.listdir(outputs) == [out.name], f"{where}: leaves {os.listdir(outputs)}"
        assert told == "" or out.read_bytes() == OLD, f"{where}: a part of the output is there"
        assert told != "" or out.read_bytes() != OLD, f"{where}: no error and no file"
        return count

    return _exhausted("export", once, size)


SUBJECTS = {"R10": failing_allocations, "R11": failing_calls}

if __name__ == "__main__":
    print(json.dumps(vars(_export_faults(Path(sys.argv[1]), Size(share=float(sys.argv[2]))))))
