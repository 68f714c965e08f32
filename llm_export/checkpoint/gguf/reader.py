"""Opens GGUF files: metadata, and where each tensor lies. Safe against hostile files; no tensor is read here."""

from __future__ import annotations

import math
import mmap
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from llm_export.checkpoint.gguf.fields import MAX_KEY_BYTES, Cursor, Metadata, Value, read_value
from llm_export.errors import FileError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
MAX_ALIGNMENT = 1 << 20
MAX_NAME_BYTES = 64
MAX_DIMENSIONS = 4
MIN_PAIR_BYTES = 8 + 1 + 4 + 1  # length and one byte of a key, type, one byte of value
MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8  # length and one byte of a name, one dimension, type, offset
SPLIT_NAME = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")

# type: (name, elements of a block, bytes of a block)
TYPES: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 40), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18),
}  # fmt: skip
REMOVED_TYPES = {
    4: "Q4_2", 5: "Q4_3", 31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8", 36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8",
    38: "IQ4_NL_8_8",
}  # fmt: skip


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies. shape: as PyTorch counts, rows first; data: its bytes, empty for a type that is unknown."""

    name: str
    path: Path
    shape: tuple[int, ...]
    type: int
    data: memoryview

    @property
    def type_name(self) -> str:
        return TYPES[self.type][0] if self.type in TYPES else REMOVED_TYPES.get(self.type, str(self.type))

    @property
    def num_rows(self) -> int:
        return math.prod(self.shape[:-1])

    @property
    def row_bytes(self) -> int:
        _, elements, size = TYPES[self.type]
        return self.shape[-1] // elements * size


@dataclass(frozen=True)
class GgufModel:
    """What a file, or all parts of a split one, hold. Tensors stay mapped as long as anything refers to them."""

    path: Path  # of the first part
    metadata: Metadata
    tensors: dict[str, StoredTensor]

    @property
    def name(self) -> str:
        return model_name(self.path)

    @property
    def architecture(self) -> str:
        return self.metadata.text("general.architecture")


def model_name(path: Path) -> str:
    """Returns the name of a file without its ending and the number of its part."""
    match = SPLIT_NAME.fullmatch(path.name)
    return match["stem"] if match else path.stem


def find_gguf(path: Path) -> Path | None:
    """Returns a file that is GGUF, or the one that a folder without config.json has; None for anything else.

    Errors: FileError if the folder has several, or nothing has the name of a GGUF file that was given
    """
    if path.is_dir():
        return None if (path / "config.json").is_file() else _only_gguf(path)
    if path.suffix.lower() == ".gguf" and not path.exists():
        raise FileError(f"{path}: no such file")
    try:
        with open(path, "rb") as file:
            return path if file.read(4) == MAGIC or path.suffix.lower() == ".gguf" else None
    except OSError:
        return None


def _only_gguf(folder: Path) -> Path | None:
    """Parts of a split file count as one; projectors of images (mmproj) as none."""
    files = [path for path in folder.glob("*.gguf") if not path.name.startswith("mmproj")]
    by_name = {model_name(path): path for path in sorted(files, reverse=True)}
    if len(by_name) > 1:
        shown = ", ".join(path.name for path in sorted(by_name.values()))
        raise FileError(f"{folder}: has several GGUF files: give one of them: {shown}")
    return next(iter(by_name.values()), None)


def open_gguf(path: Path) -> GgufModel:
    """Opens a file, or all parts of a split one when any is given.

    Errors: FileError naming file, field and value   Cost: reads the header; tensors are mapped
    """
    match = SPLIT_NAME.fullmatch(path.name)
    metadata, tensors = _open_part(path)
    count = metadata.integer("split.count", 0, high=99999)
    if count <= 1:
        return GgufModel(path, metadata, tensors)
    if match is None or int(match["count"]) != count:
        raise FileError(
            f"{path}: split.count = {count}: the file must have its first name, NAME-00001-of-{count:05}.gguf, and lie "
            "beside the other parts"
        )
    return _open_parts(path.parent, match["stem"], count)


def _open_parts(folder: Path, stem: str, count: int) -> GgufModel:
    paths = [folder / f"{stem}-{i:05}-of-{count:05}.gguf" for i in range(1, count + 1)]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise FileError(f"{folder}: {stem} has {count} parts, of which these are not there: {shown}. Download them")
    tensors: dict[str, StoredTensor] = {}
    first = _open_part(paths[0])[0]
    for i, path in enumerate(paths):
        metadata, own = _open_part(path)
        for key, expected in (("split.no", i), ("split.count", count)):
            if metadata.integer(key) != expected:
                raise FileError(f"{path}: {key} = {metadata.integer(key)}: must be {expected}, as its name says")
        for name in own.keys() & tensors.keys():
            raise FileError(f"{path}: tensor '{name}' is in {tensors[name].path.name} too: must be in one part")
        tensors |= own
    expected = first.integer("split.tensors.count", len(tensors))
    if expected != len(tensors):
        raise FileError(f"{paths[0]}: split.tensors.count = {expected}: its {count} parts have {len(tensors)}")
    return GgufModel(paths[0], first, tensors)


def _open_part(path: Path) -> tuple[Metadata, dict[str, StoredTensor]]:
    cursor = Cursor(path, _map(path))
    num_tensors, num_pairs = _header(cursor)
    metadata = Metadata(path, _pairs(cursor, num_pairs))
    alignment = metadata.integer("general.alignment", DEFAULT_ALIGNMENT, low=8, high=MAX_ALIGNMENT)
    if alignment & (alignment - 1):
        raise cursor.fail("general.alignment", alignment, f"must be a power of two from 8 to {MAX_ALIGNMENT}")
    entries = [_entry(cursor, i) for i in range(num_tensors)]
    start = -(-cursor.position // alignment) * alignment
    tensors: dict[str, StoredTensor] = {}
    for name, shape, kind, offset in entries:
        if name in tensors:
            raise FileError(f"{path}: tensor '{name}' is there twice: names must differ")
        data = _bytes(cursor, name, shape, kind, offset, start, alignment)
        tensors[name] = StoredTensor(name, path, shape, kind, data)
    _check_apart(path, entries, tensors.values())
    return metadata, tensors


def _map(path: Path) -> memoryview:
    """Maps a file. The pages are private, so that tensors may share them; nothing is ever written to the file."""
    try:
        with open(path, "rb") as file:
            if path.stat().st_size == 0:
                raise FileError(f"{path}: 0 bytes: not a GGUF file. Download it again")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _header(cursor: Cursor) -> tuple[int, int]:
    """Returns the number of tensors and of pairs."""
    magic = bytes(cursor.take(4, "magic"))
    if magic != MAGIC:
        raise cursor.fail("magic", repr(magic), f"must be {MAGIC!r}: this is not a GGUF file")
    version = int(cursor.number("<I", "version"))
    if version & 0xFFFF == 0 and version:
        raise FileError(f"{cursor.path}: is big-endian: must be a little-endian GGUF file")
    if version not in VERSIONS:
        raise cursor.fail("version", version, "must be 2 or 3")
    num_tensors = cursor.count("<Q", "number of tensors", MIN_TENSOR_BYTES)
    return num_tensors, cursor.count("<Q", "number of metadata pairs", MIN_PAIR_BYTES)


def _pairs(cursor: Cursor, count: int) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for i in range(count):
        key = cursor.text(f"key {i} of the metadata", MAX_KEY_BYTES)
        if key in values:
            raise FileError(f"{cursor.path}: key '{key}' is there twice: keys must differ")
        values[key] = read_value(cursor, int(cursor.number("<I", f"type of {key}")), key)
    return values


def _entry(cursor: Cursor, index: int) -> tuple[str, tuple[int, ...], int, int]:
    """Returns name, shape, type and offset."""
    name = cursor.text(f"name of tensor {index}", MAX_NAME_BYTES)
    what = f"number of dimensions of tensor '{name}'"
    num_dimensions = int(cursor.number("<I", what))
    if not 1 <= num_dimensions <= MAX_DIMENSIONS:
        raise cursor.fail(what, num_dimensions, f"must be 1 to {MAX_DIMENSIONS}")
    shape = tuple(int(cursor.number("<Q", f"shape of tensor '{name}'")) for _ in range(num_dimensions))
    kind = int(cursor.number("<I", f"type of tensor '{name}'"))
    return name, shape[::-1], kind, int(cursor.number("<Q", f"offset of tensor '{name}'"))


def _bytes(cursor: Cursor, name: str, shape, kind: int, offset: int, start: int, alignment: int) -> memoryview:
    """Returns the bytes of a tensor: whole, aligned, and inside the file."""
    if offset % alignment:
        raise cursor.fail(f"offset of tensor '{name}'", offset, f"must be a multiple of {alignment}")
    if min(shape) < 1:
        raise cursor.fail(f"shape of tensor '{name}'", list(shape), "every dimension must be at least 1")
    if kind not in TYPES:
        return memoryview(b"")
    type_name, elements, size = TYPES[kind]
    if shape[-1] % elements:
        raise cursor.fail(f"shape of tensor '{name}'", list(shape), f"rows of type {type_name} must be a multiple of "
                          f"{elements} long")  # fmt: skip
    num_bytes, available = math.prod(shape) // elements * size, len(cursor.data) - start - offset
    if num_bytes > available:
        raise FileError(
            f"{cursor.path}: tensor '{name}' of shape {list(shape)} and type {type_name} has {num_bytes} bytes at "
            f"offset {offset}: must be at most {max(available, 0)}, which the file has there. Download it again"
        )
    return cursor.data[start + offset : start + offset + num_bytes]


def _check_apart(path: Path, entries: list, tensors: Iterable[StoredTensor]) -> None:
    end, before = 0, ""
    for offset, tensor in sorted(zip((entry[3] for entry in entries), tensors, strict=True), key=lambda pair: pair[0]):
        if offset < end and tensor.data:
            raise FileError(
                f"{path}: offset of tensor '{tensor.name}' = {offset}: must be at least {end}, where '{before}' ends"
            )
        if tensor.data:
            end, before = offset + len(tensor.data), tensor.name
