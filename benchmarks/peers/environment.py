"""Installs peers, converts checkpoints and runs measured processes, all below one work folder.

    WORK/venvs/PEER            a virtual environment, and PEER.stamp: what was installed
    WORK/checkpoints/MODEL     random weights
    WORK/converted/PEER/MODEL  what the peer reads, and MODEL.stamp: what it was made from
    WORK/logs                  output of the last command of each kind

Every step is skipped when its stamp says that the same was done before.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import shapes
from benchmarks.peers import Peer

ROOT = Path(__file__).resolve().parents[2]
SAMPLE_SECONDS = 0.05
PROFILED_STEPS = 4
INSTALL_SECONDS = 7200
CONVERT_SECONDS = 5400
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


class PeerError(Exception):
    """A peer that could not be installed, converted for or run; its text is one line."""


def say(text: str) -> None:
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Measured:
    """What one fresh process reported, and the memory that it had at most, in MB (10^6 bytes)."""

    report: dict
    private_mb: float
    file_backed_mb: float


class Environment:
    """The work folder. lock: a file to hold with flock around every measured process, for machines that are shared."""

    def __init__(self, work: Path, lock: Path | None = None):
        self.work = work.resolve()
        self._lock = lock
        (self.work / "logs").mkdir(parents=True, exist_ok=True)

    def checkpoint(self, model: str) -> Path:
        """Returns the folder of the random checkpoint, written if it is not there."""
        folder = self.work / "checkpoints" / model
        key = f"version {shapes.CHECKPOINT_VERSION} {shapes.SHAPES[model]}"
        if not _stamped(folder, key):
            say(f"{model}: writing the checkpoint")
            _fresh(folder)
            shapes.write_checkpoint(folder, shapes.SHAPES[model])
            _stamp(folder, key)
        return folder

    def python(
        self, name: str, requirements: tuple[str, ...], without: tuple[str, ...] = (), build: str | None = None
    ) -> str:
        """Returns the interpreter of an environment that has `requirements` but not `without`, made if not there.

        build: CMAKE_ARGS for what is compiled, in an environment of its own, from sources and not from a cache
        """
        if not requirements:
            return sys.executable
        folder = self.work / "venvs" / name
        interpreter, key = folder / "bin" / "python", " ".join([*requirements, *([build] if build else [])])
        if not (_stamped(folder, key) and interpreter.exists()):
            say(f"{name}: installing {key}")
            self.call(f"{name}-venv", [sys.executable, "-m", "venv", str(folder)], INSTALL_SECONDS)
            pip = [str(interpreter), "-m", "pip"]
            install = [*pip, "install", *(["--no-cache-dir"] if build else []), *requirements]
            self.call(f"{name}-install", install, INSTALL_SECONDS, {"CMAKE_ARGS": build} if build else None)
            if without:
                self.call(f"{name}-uninstall", [*pip, "uninstall", "--yes", *without])
            _stamp(folder, key)
        return str(interpreter)

    def version(self, python: str, distribution: str) -> str:
        """Returns the version of an installed distribution, "" if there is none."""
        code = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
        found = subprocess.run([python, "-c", code, distribution], capture_output=True, text=True, check=False)
        return found.stdout.strip()

    def convert(self, peer: Peer, model: str, python: str) -> Path:
        """Returns the folder that the peer runs from, converted if it is not there or was made from something else."""
        folder = self.work / "converted" / peer.name / model
        checkpoint = self.checkpoint(model)
        key = f"{' '.join(peer.requirements)} | {peer.conversion} | {_read_stamp(checkpoint)} | {sources_key(peer)}"
        if not _stamped(folder, key):
            say(f"{peer.name}: converting {model}")
            _fresh(folder)
            command = [python, "-m", peer.module, "convert", str(checkpoint), str(folder)]
            self.call(f"{peer.name}-{model}-convert", command, CONVERT_SECONDS, peer.settings)
            _stamp(folder, key)
        return folder

    def run(self, peer: Peer, python: str, arguments: list[str], label: str, timeout: float) -> Measured:
        """Runs a peer once in a fresh process and samples its memory. Errors: PeerError."""
        command = [python, "-m", peer.module, "run", *arguments]
        log, output = self._log(f"{peer.name}-{label}-run"), self._log(f"{peer.name}-{label}-output")
        with self._locked(), open(log, "w") as errors, open(output, "w") as reports:
            process = subprocess.Popen(
                command, stdout=reports, stderr=errors, cwd=self.work, env=variables(peer.settings)
            )
            memory = _watch(process, timeout)
        if process.returncode != 0:
            raise PeerError(_failure(process.returncode, log))
        return Measured(json.loads(output.read_text().strip().splitlines()[-1]), *memory)

    def limits(self, threads: int, settings: dict[str, str] | None = None) -> dict:
        """Measures what the machine can read and multiply, with these environment variables.

        Returns: read_gb_s and int8_gmac_s   Errors: PeerError
        """
        command = [sys.executable, "-m", "mote.cli", "bench", "--limits", "--json", "--threads", str(threads)]
        with self._locked():
            environment = variables(settings or {})
            found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.work, env=environment)
        try:
            limits = json.loads(found.stdout)
            return {name: float(limits[name]) for name in ("read_gb_s", "int8_gmac_s")}
        except (ValueError, KeyError, TypeError):
            raise PeerError(f"mote bench --limits: {last_line(found.stderr or found.stdout)}") from None

    def profile(self, file: Path, backend: str, threads: int, prompt_tokens: int, depth: int) -> dict:
        """Has `mote bench` profile a file: a prompt, and a few steps of decoding after `depth` tokens.

        Returns: its report   Errors: PeerError
        """
        command = [sys.executable, "-m", "mote.cli", "bench", str(file), "--backend", backend, "--profile", "--json"]
        command += ["--threads", str(threads), "--repetitions", "1"]
        cases = ["--prompt-tokens", str(prompt_tokens), "--generate-tokens", str(PROFILED_STEPS)]
        with self._locked():
            found = subprocess.run(
                [*command, *cases, "--depth", f"0,{depth}"],
                capture_output=True,
                text=True,
                check=False,
                cwd=self.work,
                env=variables({}),
            )
        try:
            return json.loads(found.stdout)
        except ValueError:
            raise PeerError(f"mote bench --profile: {last_line(found.stderr or found.stdout)}") from None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        if self._lock is None:
            yield
            return
        with open(self._lock, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _log(self, name: str) -> Path:
        return self.work / "logs" / f"{name}.log"

    def call(
        self, name: str, command: list[str], timeout: float = CONVERT_SECONDS, settings: dict[str, str] | None = None
    ) -> None:
        """Runs a command to its end, output to a log named `name`. Errors: PeerError with the last line of it."""
        log = self._log(name)
        with open(log, "w") as output:
            try:
                found = subprocess.run(
                    ["nice", "-n", "5", *command],
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=timeout,
                    check=False,
                    cwd=self.work,
                    env=variables(settings or {}),
                )
            except subprocess.TimeoutExpired:
                raise PeerError(f"{name}: not done after {timeout:.0f} s; see {log}") from None
        if found.returncode != 0:
            raise PeerError(_failure(found.returncode, log))


def sources_key(peer: Peer) -> str:
    """Returns a hash of what decides the bytes of a .mote file; "" for the others, whose versions are pinned."""
    if peer.requirements:
        return ""
    import llm_export

    package = Path(llm_export.__file__).parent
    folders = [package, package.parent / "backends"]
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".fbs")]
    files += (package.parent / "kernels").glob("*format*")
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.relative_to(package.parent)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def folder_bytes(folder: Path) -> int:
    """Returns the size of all files of a folder."""
    return sum(path.stat().st_size for path in _files(folder))


def read_through(folder: Path) -> None:
    """Reads all files of a folder, so that they are in the page cache."""
    for path in _files(folder):
        with open(path, "rb") as file:
            while file.read(1 << 24):
                pass


def evict(folder: Path) -> None:
    """Has the system forget all files of a folder, so that the next read of them comes from the disk."""
    for path in _files(folder):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def last_line(text: str) -> str:
    """Returns the last line that is not blank, shortened to fit a table."""
    lines = [line.strip() for line in text.replace("\r", "\n").splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no output"


def _failure(status: int, log: Path) -> str:
    return f"{last_line(log.read_text(errors='replace'))} (exit status {status}; see {log})"


def variables(settings: dict[str, str]) -> dict[str, str]:
    return os.environ | OFFLINE | {"PYTHONPATH": str(ROOT)} | settings


def _watch(process: subprocess.Popen, timeout: float) -> tuple[float, float]:
    """Waits for a process. Returns the peaks of its private and its file-backed resident memory, in MB."""
    deadline = time.monotonic() + timeout
    private = file_backed = 0.0
    while process.poll() is None:
        try:
            text = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            text = ""
        fields = dict(line.split(":", 1) for line in text.splitlines())
        if "RssAnon" in fields:
            private = max(private, int(fields["RssAnon"].split()[0]) * 1024 / 1e6)
            file_backed = max(file_backed, int(fields["RssFile"].split()[0]) * 1024 / 1e6)
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            raise PeerError(f"not done after {timeout:.0f} s")
        time.sleep(SAMPLE_SECONDS)
    return private, file_backed


def _fresh(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _stamp_path(folder).unlink(missing_ok=True)
    folder.mkdir(parents=True)


def _stamp_path(folder: Path) -> Path:
    return folder.with_name(folder.name + ".stamp")


def _stamp(folder: Path, key: str) -> None:
    _stamp_path(folder).write_text(key)


def _read_stamp(folder: Path) -> str:
    path = _stamp_path(folder)
    return path.read_text() if path.exists() else ""


def _stamped(folder: Path, key: str) -> bool:
    return folder.exists() and _read_stamp(folder) == key
