"""A tokenizer small enough for the vocabulary of tiny checkpoints, such as a user's folder has one."""

from __future__ import annotations

import json
import string
from pathlib import Path

from tokenizers import Tokenizer, decoders
from tokenizers.models import BPE

SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
MERGES = [("t", "h"), ("th", "e"), (" ", "the"), ("i", "n"), (" ", "a")]


def save_tiny_tokenizer(folder: Path) -> None:
    """Writes tokenizer.json and tokenizer_config.json: byte pairs over printable ASCII, 108 tokens."""
    tokens = [*SPECIAL, *string.printable[:95], "\n", *("".join(pair) for pair in MERGES)]
    model = BPE({token: i for i, token in enumerate(tokens)}, MERGES, unk_token="<unk>")
    tokenizer = Tokenizer(model)
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
