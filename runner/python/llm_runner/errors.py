"""What can go wrong, as a small tree: catch `MoteError` for all of it."""

from __future__ import annotations

from llm_runner._core import ERROR_CODES


class MoteError(Exception):
    """Base of every error that Mote raises on purpose; its text is one paragraph for the user.

    code: the MOTE_ERROR_* number of the C API, one of llm_runner.errors.ERROR_CODES
    """

    code: int


class FileError(MoteError):
    """The file is missing, unreadable, or was changed while it was in use."""


class ProgramError(MoteError):
    """The file is malformed, of another version, or needs an op that this build does not have."""


class SessionFileError(MoteError):
    """A saved session that is damaged, or that another model file made."""


class BackendError(MoteError):
    """A backend that this build does not have, or that does not work on this device."""


class TokenizerError(ProgramError):
    """A tokenizer of a kind that is not supported, or a malformed one."""


class TemplateError(MoteError):
    """A chat template that is not valid, or that refuses its conversation; the text is what jinja2 says."""


class ArgumentError(MoteError, ValueError):
    """An argument or option has a value that is not accepted."""


class ContextFullError(ArgumentError):
    """More tokens than the session's context has room for."""


class StateError(MoteError, RuntimeError):
    """A call that its object does not take now: another one runs, a batch has the session, or its text was changed."""


class ResourceError(MoteError, MemoryError):
    """The system refused memory or a thread."""


class CancelledError(MoteError):
    """The session was cancelled."""


_NAMES = {
    MoteError: ("INTERNAL",),
    FileError: ("FILE_UNREADABLE", "FILE_NOT_FOUND", "FILE_CHANGED", "FILE_UNWRITABLE"),
    ProgramError: ("INVALID_PROGRAM", "UNSUPPORTED_VERSION", "UNSUPPORTED_OP"),
    SessionFileError: ("INVALID_SESSION",),
    BackendError: ("UNSUPPORTED_BACKEND",),
    TokenizerError: ("INVALID_TOKENIZER",),
    TemplateError: ("TEMPLATE",),
    ArgumentError: ("INVALID_ARGUMENT",),
    ContextFullError: ("CONTEXT_FULL",),
    StateError: ("INVALID_STATE",),
    ResourceError: ("OUT_OF_MEMORY",),
    CancelledError: ("CANCELLED",),
}
_TYPES = {ERROR_CODES[name]: kind for kind, names in _NAMES.items() for name in names}
for _kind, _names in _NAMES.items():
    _kind.code = ERROR_CODES[_names[0]]  # of those that Python raises


def error_from_code(code: int, message: str) -> MoteError:
    """Makes the exception that belongs to a code of the C API."""
    error = _TYPES.get(code, MoteError)(message)
    error.code = code
    return error
