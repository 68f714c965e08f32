"""What must work where only the wheel is installed: python check_installed.py [demo.mote]. Needs nothing but Python.

Runs in the environment that holds the package; it has no PyTorch.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

SCRIPTS = Path(sysconfig.get_path("scripts"))
MOTE = SCRIPTS / "mote"


def mote(*words: str, status: int = 0, text: str = "") -> subprocess.CompletedProcess[str]:
    # Away from the sources, which Python would import instead.
    done = subprocess.run([MOTE, *words], capture_output=True, text=True, input=text, cwd=SCRIPTS, timeout=300)
    if done.returncode != status:
        sys.exit(f"mote {' '.join(words)}: has status {done.returncode}: must be {status}\n{done.stdout}{done.stderr}")
    return done


def check_words() -> None:
    version = mote("--version").stdout
    print(version)
    assert "instruction sets: " in version and "backends: cpu, vulkan, xnnpack" in version, version
    assert "line editing: libedit" in version, version
    for verb in ("run", "chat", "bench", "inspect", "verify", "serve", "export", "eval"):
        assert mote(verb, "--help").stdout, verb
    for shell in ("bash", "zsh", "fish"):
        assert "_MOTE_COMPLETE" in mote("completion", shell).stdout if shutil.which(shell) else True
    manual = Path(sys.prefix) / "share" / "man" / "man1"
    assert (manual / "mote.1").is_file() and (manual / "mote-run.1").is_file(), list(manual.glob("*"))


def check_extra() -> None:
    if find_spec("torch") is None:
        said = " ".join(mote("export", "org/name", status=2).stderr.split())
        assert "pip install 'mote-llm[export]'" in said, said


def check_model(file: str) -> None:
    answer = mote("run", file, "def add(a, b):", "--max-new-tokens", "16", "--greedy", "--raw").stdout
    assert answer, "no text"
    print(answer)
    from mote import Model

    model = Model.load(file)
    assert "".join(model.generate("def add(a, b):", max_new_tokens=16, do_sample=False)).strip() in answer, answer
    mote("verify", file)
    mote("chat", file, text="Hello\n")


def main() -> None:
    check_words()
    check_extra()
    if len(sys.argv) > 1:
        check_model(str(Path(sys.argv[1]).resolve()))
    print("works")


if __name__ == "__main__":
    main()
