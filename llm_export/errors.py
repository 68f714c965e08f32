"""What can go wrong: the runner's tree of errors with what only an export can meet. Catch `MoteError` for all of it."""

from __future__ import annotations

from llm_runner.errors import ArgumentError, CancelledError, FileError, MoteError, ProgramError

__all__ = [
    "ArgumentError",
    "CancelledError",
    "CheckError",
    "FileError",
    "MoteError",
    "ProgramError",
    "UnsupportedError",
]


class UnsupportedError(MoteError):
    """A model or op that Mote cannot export.

    model: the `model_type`; op: what is missing, with its place in the Hugging Face source; suggestion: what to do.
    """

    def __init__(self, model: str, op: str, suggestion: str = ""):
        self.model, self.op, self.suggestion = model, op, suggestion
        text = f"model type '{model}' cannot be exported: {op}"
        super().__init__(f"{text}. {suggestion}" if suggestion else text)


class CheckError(MoteError):
    """The exported program disagrees with the Hugging Face module."""
