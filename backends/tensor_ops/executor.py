"""A program file with its asset, run by an interpreter: for checks, on machines without what the asset is made for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from llm_export.errors import ArgumentError, FileError
from llm_export.program import flat
from llm_export.program.header import HEADER_BYTES, MAGIC, VERSION, Header
from llm_export.program.instructions import LoweredMethod, storage_roots

from .reference import Asset, Reference, StatePort, check_asset

DTYPES = {"float32": np.float32, "float16": np.float16, "int32": np.int32}


class Interpreter(Protocol):
    """Runs the functions of an asset."""

    def array(self, data: np.ndarray) -> Any:
        """Memory for a state, which calls change in place."""
        ...

    def call(self, name: str, inputs: Mapping[str, np.ndarray], states: Mapping[str, Any]) -> dict[str, np.ndarray]: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Call:
    """A method with one length of calls."""

    name: str
    tokens: int
    reference: Reference
    inputs: tuple[str, ...]  # names of the method's inputs, in the order of the reference's


class Model:
    """target: that the file was exported for   kind: of its asset   interpreter: of a folder
    folder: of the asset; None: beside the file, with the name that the file says

    Thread safety: one at a time
    """

    def __init__(
        self,
        path: Path,
        target: str,
        kind: Asset,
        interpreter: Callable[[Path], Interpreter],
        folder: Path | None = None,
    ):
        self.path = Path(path)
        program, blobs, self._tokenizer_bytes = _read(self.path)
        self.samples = program.goldenSamples or []
        self.has_recurrent = any(flat.inverse(flat.STATE_KINDS)[s.kind] == "recurrent" for s in program.states)
        methods = [flat.method_of(table)[0] for table in program.methods]
        self.calls = [_call(self.path, method, blobs, kind) for method in methods if method.target == target]
        if not self.calls:
            raise ArgumentError(f"{self.path}: was not exported for {target}, as mote export --backend {target} does")
        first = self.calls[0].reference
        folder = self.path.parent / first.asset if folder is None else folder
        check_asset(folder, first, str(self.path), kind)
        self._tokenizer = None
        self.interpreter = interpreter(folder)

    def tokenize(self, text: str) -> list[int]:
        if self._tokenizer is None:
            from llm_tokenizer import Tokenizer

            self._tokenizer = Tokenizer(self._tokenizer_bytes)
        return self._tokenizer.encode_ids(text)

    @property
    def has_tokenizer(self) -> bool:
        return bool(self._tokenizer_bytes)

    def session(self, **options) -> Session:
        """options: context_length, at most the asset's; others concern the runner only"""
        return Session(self, options.get("context_length"))

    def close(self) -> None:
        self.interpreter.close()


class Session:
    """A sequence: states in memory of its own, and how many tokens they hold."""

    def __init__(self, model: Model, context_length: int | None = None):
        self.model, self.position = model, 0
        most = model.calls[0].reference.context_length
        self.context_length = most if context_length is None else context_length
        if not 0 < self.context_length <= most:
            raise ArgumentError(f"context_length = {context_length}: must be 1 to {most}, what the asset is made for")
        self._states: dict[str, object] = {}
        self.rewind(0)

    def rewind(self, position: int) -> None:
        """Goes back. Errors: ArgumentError if a recurrent state cannot"""
        if not 0 <= position <= self.position:
            raise ArgumentError(f"position = {position}: must be 0 to {self.position}")
        if position == 0:
            ports = {port.name: port for call in self.model.calls for port in call.reference.states}
            zeros = {name: np.zeros(port.shape, DTYPES[port.dtype]) for name, port in ports.items()}
            array = self.model.interpreter.array
            self._states = {name: each if ports[name].output else array(each) for name, each in zeros.items()}
        elif self.model.has_recurrent and position != self.position:
            raise ArgumentError(f"position = {position}: must be 0 or {self.position} with recurrent states")
        self.position = position

    def prefill(self, ids: Sequence[int]) -> np.ndarray:
        """Returns: the logits of the last token, float32 [vocab_size]"""
        return self._all("prefill", ids)[-1][-1]

    def decode(self, id: int) -> np.ndarray:
        return self._all("prefill", [id])[-1][-1]

    def verify(self, ids: Sequence[int]) -> np.ndarray:
        """Returns: the logits of every token, float32 [len(ids), vocab_size]"""
        return np.concatenate(self._all("verify", ids))

    def _all(self, name: str, ids: Sequence[int]) -> list[np.ndarray]:
        if not ids or len(ids) > self.context_length - self.position:
            room = self.context_length - self.position
            raise ArgumentError(f"{len(ids)} tokens: must be 1 to {room}, as many as the context has room for")
        rows, left = [], list(ids)
        while left:
            call = self._choose(name, len(left))
            taken = left[: call.tokens]
            left = left[len(taken) :]
            rows.append(self._run(call, taken))
        return rows

    def _choose(self, name: str, count: int) -> Call:
        """As the runner does: the longest call that is filled, else one that is padded, else one token."""
        fitting = [call for call in self.model.calls if call.name == name and call.tokens <= count]
        if fitting and max(call.tokens for call in fitting) == count:
            return max(fitting, key=lambda call: call.tokens)
        room = self.model.calls[0].reference.context_length - self.position
        padded = [
            call for call in self.model.calls if call.name == "verify" and count <= call.tokens <= room
        ]
        if padded and count > 1 and not self.model.has_recurrent:
            return min(padded, key=lambda call: call.tokens)
        if fitting:
            return max(fitting, key=lambda call: call.tokens)
        return next(call for call in self.model.calls if call.name == "decode")

    def _run(self, call: Call, ids: Sequence[int]) -> np.ndarray:
        """Returns: the logits of the ids, or of the last one. Tokens that fill a call up are taken back."""
        padded = [*ids, *[ids[-1]] * (call.tokens - len(ids))]
        given = {"input_ids": padded, "position_ids": range(self.position, self.position + call.tokens)}
        inputs = {
            port.name: np.array(given[name], DTYPES[port.dtype]).reshape(port.shape)
            for port, name in zip(call.reference.inputs, call.inputs, strict=True)
        }
        ports = call.reference.states
        inputs |= {port.name: self._states[port.name] for port in ports if port.output}
        states = {port.name: self._states[port.name] for port in ports if not port.output}
        found = self.model.interpreter.call(call.reference.function, inputs, states)
        for port in ports:
            if port.output:
                self._carry(port, found[port.output])
        self.position += len(ids)
        logits = found[call.reference.outputs[0].name].astype(np.float32)
        return logits.reshape(-1, logits.shape[-1])[: len(ids)]


    def _carry(self, port: StatePort, made: np.ndarray) -> None:
        """Puts what a call made where the next one finds it."""
        is_cache = port.part in ("keys", "values")
        rows = slice(self.position, self.position + made.shape[2]) if is_cache else slice(None)
        self._states[port.name][(slice(None), slice(None), rows) if is_cache else rows] = made


def _read(path: Path) -> tuple[object, list[bytes], bytes]:
    """The program of a file that this exporter wrote, its blobs and its tokenizer. Errors: FileError"""
    try:
        with open(path, "rb") as file:
            header = Header.of(file.read(HEADER_BYTES), MAGIC)
            if header is None:
                raise FileError(f"{path}: is no .mote file")
            if header.version != VERSION:
                raise FileError(f"{path}: version = {header.version}: must be {VERSION}")
            program = flat.parse(file.read(header.body_bytes))
            segments = {record.kind: record for record in map(flat.SegmentRecord.of, program.segments)}

            def bytes_of(kind: str) -> bytes:
                if kind not in segments:
                    return b""
                file.seek(segments[kind].offset)
                return file.read(segments[kind].bytes)

            delegates, tokenizer = bytes_of("delegates"), bytes_of("tokenizer")
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from error
    return program, [delegates[d.offset : d.offset + d.bytes] for d in program.delegates or []], tokenizer


def _call(path: Path, method: LoweredMethod, blobs: Sequence[bytes], kind: Asset) -> Call:
    nodes = [each for each in method.instructions if method.values[each.outputs[0]].alias_of < 0]
    others = [each.op for each in nodes if each.op != "mote.delegate"]
    if len(nodes) != 1 or others:
        raise ArgumentError(
            f"{path}: the CPU runs {', '.join(sorted(set(others)))} of {method.name} beside {method.target}, which "
            "only the runner on a device can do"
        )
    (instruction,) = nodes
    index = instruction.attributes["delegate"][0].constant
    reference = Reference.of_bytes(blobs[index], f"{path}: delegates[{index}]", kind)
    names, roots = dict(zip(method.inputs, method.input_names, strict=True)), storage_roots(method.values)
    inputs = tuple(names[roots[value]] for value in instruction.inputs)
    return Call(method.name, method.max_tokens, reference, inputs)
