"""Damaged inputs, under AddressSanitizer and UBSan: `build/asan`; and in Python, for what an export reads."""

from __future__ import annotations

import contextlib
import json
import random
import re
import tempfile
import time
from pathlib import Path

from scripts.soak.figures import ROOT, Figure, Size, last_lines, run

PROGRAMS = ROOT / "build" / "asan" / "tests" / "fuzz"
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
# Which program reads what; the target is its last argument.
TARGETS = {
    "chat template": ("template_mutations", None),
    "reply of a model": ("reply_mutations", None),
    "grammar, regex, JSON Schema": ("grammar_mutations", None),
    "tokenizer.json": ("tokenizer_mutations", "tokenizer_json"),
    "sentencepiece model": ("tokenizer_mutations", "sentencepiece"),
    "tiktoken ranks": ("tokenizer_mutations", "ranks"),
    "compiled tokenizer": ("tokenizer_mutations", "segment"),
    "text to encode": ("tokenizer_mutations", "encode"),
    "ids to decode": ("tokenizer_mutations", "decode"),
    "options as JSON": ("options_mutations", "options_json"),
    "options as text": ("options_mutations", "option_text"),
}
FILES = ("config.json", "model.safetensors", "model.safetensors.index.json", "tokenizer.json", "generation_config.json")


def damaged_inputs(size: Size) -> list[Figure]:
    """R5: each parser for `size.seconds`; its executions and findings."""
    seed = str(int(time.time()))
    figures = []
    for name, (program, target) in TARGETS.items():
        words = [PROGRAMS / program, "--seconds", str(size.seconds), "--seed", seed, *([target] if target else [])]
        figures.append(_row(name, run(words), seed, target))
    figures.append(_program_files(size, seed))
    return figures


def _row(name: str, done, seed: str, target: str | None) -> Figure:
    counts = [int(number) for number in re.findall(r"(\d+)(?: executions| grammars| replies|$)", done.stdout)]
    kept = len(list((CORPUS / target).iterdir())) if target and (CORPUS / target).is_dir() else 0
    corpus = f", {kept} kept inputs" if kept else ""
    if done.returncode != 0 or not counts:
        print(last_lines(done, 40))
        return Figure("R5", name, f"a finding, seed {seed}", False)
    return Figure("R5", name, f"{max(counts):,} executions{corpus}, no finding", True)


def _program_files(size: Size, seed: str) -> Figure:
    end, total, number = time.monotonic() + size.seconds, 0, int(seed)
    while time.monotonic() < end:
        done = run([PROGRAMS / "program_mutations", "--iterations", "5000", "--seed", str(number), size.model])
        if done.returncode != 0:
            return _row("`.mote` file", done, str(number), None)
        total, number = total + 5000, number + 1
    return Figure("R5", "`.mote` file", f"{total:,} executions, no finding", True)


def damaged_checkpoints(size: Size) -> list[Figure]:
    """R22: every damage to a checkpoint's files is read or is an error of Mote's."""
    import transformers

    from llm_export.checkpoint import open_checkpoint
    from llm_export.checkpoint.tokenizer import compile_tokenizer
    from llm_export.errors import MoteError

    transformers.logging.set_verbosity_error()  # it has much to say of such configs
    folder = ROOT / "examples" / "demo"
    contents = {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}
    contents["model.safetensors.index.json"] = _index(contents["model.safetensors"])
    rng = random.Random(1)
    figures = []
    for name, content in contents.items():
        refused, slowest, wrong = 0, 0.0, ""
        count = size.count(1000 if name != "model.safetensors" else 400)
        for _ in range(count):
            with _copy(folder, contents, name, _damaged(content, name, rng)) as damaged:
                start = time.monotonic()
                try:
                    compile_tokenizer(open_checkpoint(damaged).tokenizer)
                except MoteError:
                    refused += 1
                except Exception as error:
                    wrong = wrong or f"{type(error).__name__}: {error}"
                slowest = max(slowest, time.monotonic() - start)
        found = f"{count:,} damaged: {refused:,} refused, the others read; slowest {slowest * 1000:.0f} ms"
        figures.append(Figure("R22", name, found if not wrong else f"raised {wrong[:80]}", not wrong))
    return figures


def _index(weights: bytes) -> bytes:
    length = int.from_bytes(weights[:8], "little")
    names = [name for name in json.loads(weights[8 : 8 + length]) if name != "__metadata__"]
    return json.dumps({"metadata": {}, "weight_map": dict.fromkeys(names, "model.safetensors")}).encode()


@contextlib.contextmanager
def _copy(folder: Path, contents: dict[str, bytes], name: str, damaged: bytes):
    with tempfile.TemporaryDirectory() as place:
        for path in folder.iterdir():
            if path.is_file() and path.name != name:
                (Path(place) / path.name).symlink_to(path)
        (Path(place) / name).write_bytes(damaged)
        yield Path(place)


def _damaged(content: bytes, name: str, rng: random.Random) -> bytes:
    """Some bytes of a text, or of a safetensors file's header, are others."""
    data = bytearray(content)
    end = len(data)
    if name == "model.safetensors":
        end = 8 + int.from_bytes(content[:8], "little")
        if rng.random() < 0.2:
            return bytes(data[: rng.randrange(len(data))])
        if rng.random() < 0.2:
            data[:8] = rng.choice([0, 1, 2**31, 2**63, 2**64 - 1, 100_000_001]).to_bytes(8, "little")
            return bytes(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(end)
        piece = rng.choice([b'"', b"{", b"}", b"[", b"]", b",", b":", b"-1", b"1e999", b"null", b"99999999999999999999",
                            b"NaN", b"\xff", b"\x00", b"..", b"/", bytes([rng.randrange(256)])])  # fmt: skip
        data[at : at + rng.choice([0, 1, len(piece)])] = piece
    if name == "model.safetensors":  # its length says how long the header is
        data[:8] = (8 + int.from_bytes(content[:8], "little") + len(data) - len(content) - 8).to_bytes(8, "little")
    return bytes(data)


SUBJECTS = {"R5": damaged_inputs, "R22": damaged_checkpoints}
