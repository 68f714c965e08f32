"""One capture for all exports of a checkpoint in a test process: it takes most of an export's time."""

from __future__ import annotations

import hashlib

from llm_export.capture import build_model, capture
from llm_export.capture.methods import Captured
from llm_export.checkpoint import Checkpoint

_captured: dict[bytes, Captured] = {}


def captured(checkpoint: Checkpoint) -> Captured:
    """Returns what `capture` gives, remembered by the bytes of the checkpoint's config and weights, and by its methods.

    With an assistant it is not remembered. The stages behind it leave it as it is, so exports can share it.
    """
    if checkpoint.assistant is not None:
        return capture(checkpoint)
    key = _digest(checkpoint)
    if key in _captured:
        # As capture does with a reader.
        checkpoint.weights.bind(build_model(checkpoint.config, checkpoint.generates))
    else:
        _captured[key] = capture(checkpoint)
    return _captured[key]


def _digest(checkpoint: Checkpoint) -> bytes:
    digest = hashlib.sha256()
    folder = checkpoint.folder
    paths = [folder] if folder.is_file() else [folder / "config.json", *folder.rglob("*.safetensors")]
    for path in sorted(paths):
        digest.update(path.read_bytes())
    digest.update(f"{checkpoint.generates} {checkpoint.embedding is not None} {checkpoint.without_head}".encode())
    return digest.digest()
