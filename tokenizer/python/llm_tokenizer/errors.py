"""What can go wrong, as a small tree: catch `TokenizerError` for all of it."""

from __future__ import annotations


class TokenizerError(Exception):
    """Base of every error that llm_tokenizer raises on purpose; its text is one paragraph for the user."""


class FileError(TokenizerError):
    """A tokenizer file is missing, unreadable, or of no kind that is known."""


class InvalidTokenizerError(TokenizerError):
    """A tokenizer file is malformed or asks for what is not supported; the text names the field and its value."""


class ArgumentError(TokenizerError, ValueError):
    """An argument has a value that is not accepted."""


class ResourceError(TokenizerError, MemoryError):
    """The system refused memory."""


_TYPES = {30: InvalidTokenizerError, 40: ArgumentError, 50: ResourceError}


def error_from_code(code: int, message: str) -> TokenizerError:
    """Returns the exception for a code of the C API."""
    return _TYPES.get(code, TokenizerError)(message)
