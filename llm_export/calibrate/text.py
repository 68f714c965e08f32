"""The sequences of tokens that a calibration runs on: of a text, of chats, or of the sample that Mote brings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor

from llm_export.checkpoint import Checkpoint
from llm_export.checkpoint.tokenizer import original_tokenizer
from llm_export.errors import ArgumentError, FileError, MoteError

DEFAULT = "default"
SAMPLE = Path(__file__).parent / "sample"
LENGTH = 512  # tokens of a sequence, if the model has as many positions
NUM_SEQUENCES = 32  # at most
MIN_TOKENS = 2048  # fewer tell too little of how inputs go together
SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token")


def read_sequences(source: str | Path, checkpoint: Checkpoint, vocab_size: int, max_length: int) -> list[Tensor]:
    """Returns sequences of one length, int64 [1, T] each, spread evenly over the text.

    source: a UTF-8 text, a `.jsonl` with a conversation in each line, or "default"
    Errors: FileError naming the file and what in it is not accepted; ArgumentError if there is no tokenizer
    """
    if checkpoint.tokenizer is None:
        raise ArgumentError(f"calibration = '{source}': the checkpoint has no tokenizer to read it with: must be none")
    if max_length < 2:
        raise ArgumentError(f"calibration = '{source}': the model takes {max_length} token at once: must be at least 2")
    encode = original_tokenizer(checkpoint.tokenizer).encode
    ids = [index for text in _texts(source, checkpoint) for index in encode(text)]
    if len(ids) < MIN_TOKENS:
        raise FileError(f"{source}: is a calibration text of {len(ids)} tokens: must have at least {MIN_TOKENS}")
    if max(ids) >= vocab_size:
        raise FileError(f"{checkpoint.tokenizer.path}: gives id {max(ids)}: must be below vocab_size {vocab_size}")
    length = min(LENGTH, max_length)
    count = min(len(ids) // length, NUM_SEQUENCES)
    starts = [int(len(ids) / count * i) for i in range(count)]
    return [torch.tensor([ids[start : start + length]]) for start in starts]


def _texts(source: str | Path, checkpoint: Checkpoint) -> Iterator[str]:
    if str(source) == DEFAULT:
        yield from (path.read_text(encoding="utf-8") for path in sorted(SAMPLE.glob("*.txt")))
        return
    text = _read(Path(source))
    if Path(source).suffix.lower() != ".jsonl":
        yield text
        return
    render = _renderer(checkpoint)
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield _conversation(f"{source}: line {number}", line, render)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileError(
            f"{path}: byte {error.start} is no UTF-8: a calibration text must be UTF-8, plain or JSON lines (.jsonl)"
        ) from error
    except OSError as error:
        raise FileError(
            f"{path}: cannot be read: {error.strerror}: calibration must be a text file, a .jsonl file or '{DEFAULT}'"
        ) from error


def _conversation(place: str, line: str, render: Callable[[list], str]) -> str:
    """Returns the text of one line. Errors: FileError naming line and field"""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{place}: not valid JSON: {error}") from error
    messages = value.get("messages") if isinstance(value, dict) else None
    if not isinstance(messages, list) or not messages:
        found = f"messages = {json.dumps(messages)[:40]}" if isinstance(value, dict) else f"a {type(value).__name__}"
        raise FileError(f"{place}: has {found}: must be an object with a list 'messages' of roles and contents")
    for index, message in enumerate(messages):
        for name in ("role", "content"):
            if not isinstance(message, dict) or not isinstance(message.get(name), str):
                raise FileError(f"{place}: messages[{index}].{name} is missing or no string: must be a string")
    try:
        return render(messages)
    except MoteError as error:
        raise FileError(f"{place}: the chat template does not take it: {error}") from error


def _renderer(checkpoint: Checkpoint) -> Callable[[list], str]:
    """Returns what makes a text of messages: the chat template, or where there is none their contents in order."""
    from llm_runner import render_chat_template

    if not checkpoint.chat_template:
        return lambda messages: "\n\n".join(message["content"] for message in messages)
    special = {}
    for name in SPECIAL_TOKENS:
        token = checkpoint.tokenizer_config.get(name)
        token = token.get("content") if isinstance(token, dict) else token
        if isinstance(token, str):
            special[name] = token
    return lambda messages: render_chat_template(checkpoint.chat_template, messages, **special)
