"""What parts of Mote need beyond the runner, and the line that installs it."""

from __future__ import annotations

from importlib.util import find_spec

# extra of the distribution -> the packages of it that an import would miss first
EXTRAS = {
    "eval": ("lm_eval",),
    "export": ("torch", "transformers", "torchao", "safetensors", "tokenizers", "flatbuffers", "tqdm"),
}


def check_installed(extra: str, what: str) -> None:
    """Errors: ArgumentError with the line to type if `what` cannot work without an extra that is not installed."""
    missing = [name for name in EXTRAS[extra] if find_spec(name) is None]
    if missing:
        from llm_runner.errors import ArgumentError

        verb = "is" if len(missing) == 1 else "are"
        raise ArgumentError(
            f"{what} needs {', '.join(missing)}, which {verb} not installed: pip install 'mote-llm[{extra}]'"
        )
