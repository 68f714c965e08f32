"""Reads a GGUF header from bytes: every count, length and offset is checked against the bytes that are left."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from llm_export.errors import FileError

STRING, ARRAY, BOOL = 8, 9, 7
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<B", 10: "<Q", 11: "<q", 12: "<d"}
TYPE_NAMES = {
    0: "uint8", 1: "int8", 2: "uint16", 3: "int16", 4: "uint32", 5: "int32", 6: "float32", 7: "bool", 8: "string",
    9: "array", 10: "uint64", 11: "int64", 12: "float64",
}  # fmt: skip
MAX_KEY_BYTES = 65535


class Cursor:
    """A position in the bytes of one file. Nothing is read or allocated that does not fit what is left."""

    def __init__(self, path, data: memoryview):
        self.path, self.data, self.position = path, data, 0

    def left(self) -> int:
        return len(self.data) - self.position

    def fail(self, field: str, value, accepted: str) -> FileError:
        return FileError(f"{self.path}: {field} = {value}: {accepted}")

    def take(self, count: int, field: str) -> memoryview:
        if count > self.left():
            raise FileError(
                f"{self.path}: {field} = {count} bytes at byte {self.position}: must be at most {self.left()}, "
                "which the file has left. Download it again"
            )
        start, self.position = self.position, self.position + count
        return self.data[start : self.position]

    def number(self, layout: str, field: str) -> int | float:
        return struct.unpack(layout, self.take(struct.calcsize(layout), field))[0]

    def count(self, layout: str, field: str, item_bytes: int) -> int:
        """Reads how many items follow, of item_bytes or more each."""
        value = int(self.number(layout, field))
        if value > self.left() // item_bytes:
            raise self.fail(field, value, f"must be at most {self.left() // item_bytes}, which is what the file has "
                            "bytes for. Download it again")  # fmt: skip
        return value

    def text(self, field: str, max_bytes: int | None = None) -> str:
        length = self.count("<Q", f"length of {field}", 1)
        if max_bytes is not None and length > max_bytes:
            raise self.fail(f"length of {field}", length, f"must be at most {max_bytes}")
        return decode(self.path, self.take(length, field), field)


def decode(path, data: memoryview, field: str) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: {field} = {bytes(data[:40])!r}: must be UTF-8") from error


@dataclass(frozen=True)
class Array:
    """An array whose items stay in the file until they are asked for."""

    path: object
    key: str
    item_type: int
    count: int
    data: memoryview  # its items alone

    def strings(self) -> list[str]:
        cursor = Cursor(self.path, self.data)
        return [cursor.text(f"{self.key}[{i}]") for i in range(self.count)]

    def numbers(self) -> np.ndarray:
        return np.frombuffer(self.data, np.dtype(SCALARS[self.item_type]), self.count)


Value = int | float | bool | str | Array


def read_value(cursor: Cursor, kind: int, key: str) -> Value:
    """Reads one value of metadata. Errors: FileError naming key and value"""
    if kind == STRING:
        return cursor.text(key)
    if kind == ARRAY:
        return _array(cursor, key)
    value = cursor.number(_layout(cursor, kind, key, "type of "), key)
    if kind != BOOL:
        return value
    if value not in (0, 1):
        raise cursor.fail(key, value, "must be 0 or 1, as it is a bool")
    return bool(value)


def _array(cursor: Cursor, key: str) -> Array:
    kind = int(cursor.number("<I", f"type of the items of {key}"))
    if kind == ARRAY:
        raise cursor.fail(f"type of the items of {key}", "array", "must be a string, a number or a bool")
    item_bytes = 8 if kind == STRING else struct.calcsize(_layout(cursor, kind, key, "type of the items of "))
    count = cursor.count("<Q", f"number of items of {key}", item_bytes)
    start = cursor.position
    if kind == STRING:
        _skip_strings(cursor, count, key)
    else:
        cursor.take(count * item_bytes, key)
    return Array(cursor.path, key, kind, count, cursor.data[start : cursor.position])


def _skip_strings(cursor: Cursor, count: int, key: str) -> None:
    unpack: Callable = struct.Struct("<Q").unpack_from
    data, position, size = cursor.data, cursor.position, len(cursor.data)
    for i in range(count):
        if position + 8 > size or (length := unpack(data, position)[0]) > size - position - 8:
            cursor.position = position
            cursor.text(f"{key}[{i}]")
        position += 8 + length
    cursor.position = position


def _layout(cursor: Cursor, kind: int, key: str, what: str) -> str:
    if kind not in SCALARS:
        raise cursor.fail(what + key, kind, f"must be 0 to {max(TYPE_NAMES)}")
    return SCALARS[kind]


@dataclass(frozen=True)
class Metadata:
    """The key-value pairs of a file; each getter refuses a value of another kind by name."""

    path: object
    values: dict[str, Value]

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def _get(self, key: str, default, accepted: str, kinds: tuple[type, ...]):
        value = self.values.get(key, default)
        if value is None and key not in self.values:
            raise FileError(f"{self.path}: {key} is missing: {accepted}")
        if key in self.values and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
            shown = f"an array of {value.count}" if isinstance(value, Array) else repr(value)
            raise FileError(f"{self.path}: {key} = {shown}: {accepted}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        return self._get(key, default, "must be a string", (str,))

    def flag(self, key: str, default: bool | None = None) -> bool:
        return self._get(key, default, "must be a bool", (bool,))

    def integer(self, key: str, default: int | None = None, *, low: int = 0, high: int = 2**31 - 1) -> int:
        accepted = f"must be a whole number from {low} to {high}"
        value = self._get(key, default, accepted, (int,))
        if not low <= value <= high:
            raise FileError(f"{self.path}: {key} = {value}: {accepted}")
        return value

    def number(self, key: str, default: float | None = None, *, positive: bool = True) -> float:
        accepted = "must be a positive number" if positive else "must be a finite number"
        value = float(self._get(key, default, accepted, (int, float)))
        if not abs(value) < float("inf") or (positive and value <= 0):
            raise FileError(f"{self.path}: {key} = {value}: {accepted}")
        return value

    def array(self, key: str, *, strings: bool) -> Array | None:
        """Returns None where there is no such key."""
        if key not in self.values:
            return None
        accepted = "must be an array of " + ("strings" if strings else "numbers")
        value = self._get(key, None, accepted, (Array,))
        if (value.item_type == STRING) != strings:
            raise FileError(f"{self.path}: {key} = an array of {TYPE_NAMES[value.item_type]}: {accepted}")
        return value

    def integers(self, key: str, count: int, default: int | None = None, *, high: int = 2**31 - 1) -> list[int]:
        """Returns `count` numbers, one for each layer: an array, or one number that stands for all."""
        value = self.values.get(key)
        if not isinstance(value, Array):
            return [self.integer(key, default, high=high)] * count
        array = self.array(key, strings=False)
        numbers = array.numbers().tolist() if array is not None else []
        if len(numbers) != count or not all(isinstance(n, int) and 0 <= n <= high for n in numbers):
            raise FileError(f"{self.path}: {key} = an array of {value.count}: must be {count} whole numbers from 0 to "
                            f"{high}")  # fmt: skip
        return numbers
