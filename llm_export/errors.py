"""What can go wrong, as a small tree: catch `MoteError` for all of it."""

from __future__ import annotations


class MoteError(Exception):
    """Base of every error that Mote raises on purpose; its text is one paragraph for the user."""


class FileError(MoteError):
    """A file or folder is missing, unreadable, truncated or inconsistent."""


class ProgramError(MoteError):
    """A `.mote` program is malformed, or a graph breaks a contract of the program format."""


class UnsupportedError(MoteError):
    """A model or op that Mote cannot export.

    model: the `model_type`; op: what is missing, with its place in the Hugging Face source; suggestion: what to do.
    """

    def __init__(self, model: str, op: str, suggestion: str = ""):
        self.model, self.op, self.suggestion = model, op, suggestion
        text = f"model type '{model}' cannot be exported: {op}"
        super().__init__(f"{text}. {suggestion}" if suggestion else text)


class ArgumentError(MoteError, ValueError):
    """An argument or option has a value that is not accepted."""


class CancelledError(MoteError):
    """The user stopped the work."""


class CheckError(MoteError):
    """The exported program disagrees with the Hugging Face module."""
