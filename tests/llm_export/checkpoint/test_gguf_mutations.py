"""Damaged GGUF files are refused or read: none crashes, hangs or takes memory that the file does not have."""

from __future__ import annotations

import random
import resource
import struct
import time
import tracemalloc
from pathlib import Path

import pytest
import torch
from gguf import GGMLQuantizationType as Type

from llm_export.capture import build_model
from llm_export.checkpoint import open_checkpoint
from llm_export.checkpoint.tokenizer import compile_tokenizer
from llm_export.errors import FileError, MoteError
from tests.contracts.architectures import find, tiny_model
from tests.llm_export.checkpoint.gguf_files import CONVERSIONS, write_gguf
from tests.llm_export.checkpoint.test_gguf_files import TOKENIZER

NUM_FILES = 2000
MAX_SECONDS = 5.0
MAX_BYTES = 64 << 20  # beside what an undamaged file takes
EDGES = (0, 1, 2, 7, 31, 32, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1)
WIDE_EDGES = (2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    torch.set_num_threads(1)
    path = tmp_path_factory.mktemp("gguf") / "whole.gguf"
    kinds = lambda name, value: Type.Q4_1 if value.dim() == 2 else Type.F32  # noqa: E731
    write_gguf(path, CONVERSIONS["llama"], tiny_model(find("llama")), tokenizer=TOKENIZER, type_of=kinds)
    return path.read_bytes()


def damaged(whole: bytes, header_bytes: int, rng: random.Random) -> bytes:
    """Nearly all damage is done to the header, where it has a meaning."""
    content = bytearray(whole)
    at = rng.randrange(4, header_bytes)
    kind = rng.randrange(6)
    if kind == 0:
        content[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        content[at] = rng.randrange(256)
    elif kind == 2:
        at = at // 4 * 4
        content[at : at + 4] = struct.pack("<I", rng.choice(EDGES))
    elif kind == 3:
        content[at : at + 8] = struct.pack("<Q", rng.choice(EDGES + WIDE_EDGES))
    elif kind == 4:
        del content[rng.choice((at, rng.randrange(len(whole)))) :]
    else:
        start = rng.randrange(header_bytes)
        content[at:at] = whole[start : start + rng.randrange(64)]
    return bytes(content)


def words(whole: bytes, header_bytes: int, rng: random.Random) -> bytes:
    """A length or count set to an edge: eight bytes that are a small number now."""
    places = [i for i in range(4, header_bytes - 8) if 0 < struct.unpack_from("<Q", whole, i)[0] < 4096]
    at = rng.choice(places)
    return whole[:at] + struct.pack("<Q", rng.choice(EDGES + WIDE_EDGES)) + whole[at + 8 :]


def attempt(path: Path) -> MoteError | None:
    """Goes as far as an export goes before it captures, and reads some tensors."""
    try:
        checkpoint = open_checkpoint(path)
        checkpoint.weights.bind(build_model(checkpoint.config))
        for name in list(checkpoint.weights.names())[:4]:
            checkpoint.weights.read(name)
        compile_tokenizer(checkpoint.tokenizer)
    except MoteError as error:
        return error
    return None


def header_length(whole: bytes) -> int:
    return whole.index(b"blk.1.ffn_up.weight") + 64


def test_damaged_files_are_refused_or_read(whole, tmp_path):
    path = tmp_path / "x.gguf"
    path.write_bytes(whole)
    assert attempt(path) is None
    rng, header_bytes = random.Random(24), header_length(whole)
    refused = 0
    tracemalloc.start()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        for i in range(NUM_FILES):
            path.unlink()  # what maps the file keeps it
            path.write_bytes((words if i % 4 == 0 else damaged)(whole, header_bytes, rng))
            tracemalloc.reset_peak()
            started = time.perf_counter()
            error = attempt(path)
            assert time.perf_counter() - started < MAX_SECONDS, i
            assert tracemalloc.get_traced_memory()[1] < MAX_BYTES, i
            if error is not None:
                refused += 1
                assert str(path) in str(error), (i, str(error))
    finally:
        tracemalloc.stop()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < (MAX_BYTES >> 10) + (64 << 10)
    assert refused > NUM_FILES // 2


def test_every_prefix_of_the_header_is_refused(whole, tmp_path):
    path = tmp_path / "x.gguf"
    for length in range(0, header_length(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(FileError):
            open_checkpoint(path)
        path.unlink()
