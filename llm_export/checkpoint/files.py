"""Opens a checkpoint's files. What the system or the file refuses is a FileError naming the file."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError, safe_open

from llm_export.errors import FileError


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from error


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not UTF-8: {error}") from error


def open_tensors(path: Path):
    """Returns the open file of `safetensors`. Errors: FileError if it cannot be read or is not whole."""
    try:
        return safe_open(path, framework="pt")
    except SafetensorError as error:
        raise FileError(f"{path}: not a whole safetensors file: {error}. Download it again") from error
    # torch maps the file and tells of the system's errors by RuntimeError
    except (OSError, RuntimeError, MemoryError) as error:
        raise FileError(f"{path}: cannot be read: {error}") from error
