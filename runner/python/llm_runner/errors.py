"""What can go wrong, as a small tree: catch `MoteError` for all of it."""

from __future__ import annotations


class MoteError(Exception):
    """Base of every error that Mote raises on purpose; its text is one paragraph for the user.

    code: the MOTE_ERROR_* number of the C API
    """

    code: int = 70


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


_TYPES = {
    10: FileError,
    11: FileError,
    12: FileError,
    13: FileError,
    20: ProgramError,
    21: ProgramError,
    22: ProgramError,
    23: SessionFileError,
    24: BackendError,
    30: TokenizerError,
    31: TemplateError,
    40: ArgumentError,
    41: ContextFullError,
    42: StateError,
    50: ResourceError,
    60: CancelledError,
}


def error_from_code(code: int, message: str) -> MoteError:
    """Makes the exception that belongs to a code of the C API."""
    error = _TYPES.get(code, MoteError)(message)
    error.code = code
    return error
