"""Reads checkpoint tensors by the names of the module's state dict, one at a time, from mapped files.

transformers changes names and layouts between releases and describes the way from old checkpoints to today's modules in
its conversion mapping (experts merged into one tensor, prefixes that come and go). The reader applies it per tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError
from torch import Tensor
from transformers import PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import (
    WeightConverter,
    WeightRenaming,
    dot_natural_key,
    rename_source_key,
)

from llm_export.checkpoint.files import open_tensors
from llm_export.checkpoint.joined import JoinedFiles
from llm_export.checkpoint.merged import Places, find_places, gather_rows
from llm_export.checkpoint.parts import Part
from llm_export.errors import FileError
from llm_export.program.specs import StoredAs, StoredRows

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}

# Where the text model lies in checkpoints of multimodal wrappers.
WRAPPER_PREFIXES = (
    ("model.language_model.", "model."),
    ("language_model.model.", "model."),
    ("language_model.lm_head.", "lm_head."),
    ("language_model.", ""),
    ("model.text_model.", "model."),
    ("text_model.", ""),
)


@dataclass
class _Group:
    """Checkpoint tensors that become one or several module tensors together."""

    first_target: str
    converter: WeightConverter | None
    sources: list[tuple[str, str]] = field(default_factory=list)  # (pattern, checkpoint name)


# What a tensor of the checkpoint is in a module: its name there, the pattern that matched, and what converts it.
Renamed = tuple[str, str | None, WeightConverter | None]
Rename = Callable[[str], Renamed | None]


class Rows(Protocol):
    """A matrix whose rows are computed when they are asked for. Thread safety: const."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: slice | Tensor) -> Tensor: ...  # a slice of step 1, or int64 [N]


class TensorFiles(Protocol):
    """Files that hold a checkpoint's tensors under names of a state dict. Thread safety: const."""

    place: Path  # folder or file, for messages
    kind: str  # what beside the tensors asks for them, for messages

    def names(self) -> Iterable[str]: ...

    def needs_place(self, name: str) -> bool: ...  # whether it is an error if the module has none for the tensor

    def meta(self, name: str) -> Tensor: ...  # without values

    def read(self, name: str) -> Tensor: ...

    def read_rows(self, name: str, start: int, stop: int) -> Tensor: ...

    def computed_rows(self, name: str) -> Rows | None: ...  # for a matrix whose rows are computed, not mapped

    def stored_as(self, name: str) -> StoredAs | None: ...  # of a quantized weight

    # Rows of all matrices of a weight that has a stored format, one after the other.
    def stored_rows(self, name: str, start: int, stop: int) -> StoredRows: ...

    def path(self, name: str) -> Path: ...


class SafetensorsFiles:
    """Tensors in safetensors files, mapped."""

    kind = "config.json"

    def __init__(self, files: dict[str, Path]):
        """files: tensor name -> file that holds it. Errors: FileError if a file is malformed."""
        self._handles = {path: open_tensors(path) for path in sorted(set(files.values()))}
        self._files = files
        self.place = next(iter(self._handles)).parent

    def metadata(self) -> dict[str, str]:
        """What the headers of the files say beside their tensors."""
        return {name: text for handle in self._handles.values() for name, text in (handle.metadata() or {}).items()}

    def names(self) -> Iterable[str]:
        return self._files

    def needs_place(self, name: str) -> bool:
        return False

    def meta(self, name: str) -> Tensor:
        path = self._files[name]
        part = self._handles[path].get_slice(name)
        kind = part.get_dtype()
        if kind not in DTYPES:
            accepted = ", ".join(DTYPES)
            raise FileError(f"{path}: tensor '{name}' has dtype {kind}: must be one of {accepted}")
        return torch.empty(part.get_shape(), dtype=DTYPES[kind], device="meta")

    def read(self, name: str) -> Tensor:
        try:
            return self._handles[self._files[name]].get_tensor(name)
        except (SafetensorError, OSError, RuntimeError) as error:
            raise FileError(f"{self._files[name]}: tensor '{name}' cannot be read: {error}") from error

    def read_rows(self, name: str, start: int, stop: int) -> Tensor:
        return self._handles[self._files[name]].get_slice(name)[start:stop]

    def computed_rows(self, name: str) -> Rows | None:
        return None

    def stored_as(self, name: str) -> StoredAs | None:
        return None

    def stored_rows(self, name: str, start: int, stop: int) -> StoredRows:
        raise KeyError(name)

    def path(self, name: str) -> Path:
        return self._files[name]


class WeightReader:
    """Maps module tensors to tensors in files.

    Holds no tensor: files are mapped once and `read` returns pages of them where no conversion is needed.
    Lifetime: tensors that were read stay valid after the reader is gone. Thread safety: after `bind`, const.
    """

    def __init__(self, files: TensorFiles):
        """Errors: FileError if a file is malformed."""
        self._files = files
        self._groups: dict[str, _Group] = {}  # module tensor name -> group
        self._meta: dict[str, Tensor] = {}
        self._stored_name: dict[str, str] = {}  # tied name -> the name that the checkpoint has
        self._places: dict[str, Places | None] = {}  # of weights that a conversion makes; found when asked for
        self._model: PreTrainedModel | None = None
        for name in files.names():
            self._groups[name] = _Group(name, None, [(name, name)])
            self._meta[name] = files.meta(name)

    def bind(self, model: PreTrainedModel, others: Rename | None = None) -> None:
        """Learns the names, layouts and shapes that `model` uses, and ties or unties its parameters as the file asks.

        others: what tensors are that transformers gives no place in such a model
        Errors: FileError if a tensor is missing or its shape disagrees with the config.
        """
        self._model = model
        stored = {name: self._files.meta(name) for name in self._files.names()}
        groups = self._group(model, stored, others)
        self._groups, self._meta, self._stored_name = {}, {}, {}
        for group in groups:
            for name, value in self._convert(group, stored).items():
                self._groups[name], self._meta[name] = group, value
        self._untie(model)
        self._check(model)

    def beside(self, prefix: str, others: TensorFiles) -> WeightReader:
        """Returns a reader that has the tensors of other files too, under names that begin with `prefix`."""
        return WeightReader(JoinedFiles(self._files, prefix, others))

    def takes_others(self) -> bool:
        """Whether the files may hold tensors that the model has no place for."""
        return not any(self._files.needs_place(name) for name in self._files.names())

    def names(self) -> list[str]:
        """Names of the module tensors that the checkpoint has (before `bind`: names in the files)."""
        return list(self._meta)

    def __contains__(self, name: str) -> bool:
        return name in self._meta or ((part := Part.of(name)) is not None and part.source in self._meta)

    def dtype(self, name: str) -> torch.dtype:
        return self._meta_of(name).dtype

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._meta_of(name).shape)

    def _meta_of(self, name: str) -> Tensor:
        part = self._part(name)
        return self._meta[name] if part is None else part.take(self._meta[part.source])

    def _part(self, name: str) -> Part | None:
        return None if name in self._meta else Part.of(name)

    def read(self, name: str) -> Tensor:
        """Returns the tensor as it is stored: its shape and dtype are `shape(name)` and `dtype(name)`."""
        if (part := self._part(name)) is not None:
            return part.take(self.read(part.source))
        group = self._groups[name]
        stored = {source: self._files.read(source) for _, source in group.sources}
        return self._convert(group, stored)[self._stored_name.get(name, name)]

    def read_rows(self, name: str, start: int, stop: int) -> Tensor:
        """Returns rows start..stop-1 of dimension 0; maps only those where no conversion is needed."""
        if self._part(name) is not None:
            return self.read(name)[start:stop]
        group = self._groups[name]
        if group.converter is not None:
            return self.read(name)[start:stop]
        return self._files.read_rows(group.sources[0][1], start, stop)

    def rows(self, name: str) -> Tensor | Rows:
        """Returns the tensor, or what computes its rows where reading it as a whole would take memory of its size."""
        if self._part(name) is not None:
            return self.read(name)
        group = self._groups[name]
        computed = None if group.converter is not None else self._files.computed_rows(group.sources[0][1])
        return self.read(name) if computed is None else computed

    def is_quantized(self) -> bool:
        """Whether any weight is stored quantized."""
        return any(self.stored_as(name) is not None for name in self.names())

    def stored_as(self, name: str) -> StoredAs | None:
        """Returns how a quantized weight is stored; None if it is not, nor any tensor that it is made of.

        It is without a format where a conversion does more than move whole rows of tensors that are stored alike.
        """
        if (part := self._part(name)) is not None:
            whole = self.stored_as(part.source)
            why = f"tensor '{part.source}' becomes a stack of matrices, some of them transposed"
            return whole and replace(whole, format=None, why=whole.why or why)
        group = self._groups[name]
        kinds = {self._files.stored_as(source): source for _, source in group.sources}
        found = next(filter(None, kinds), None)
        if found is None or group.converter is None:
            return found
        if len(kinds) == 1 and not found.is_transposed and self._places_of(name) is not None:
            return found
        why = f"tensor '{kinds[found]}' is one of several that become '{name}'"
        if len(kinds) > 1:
            why += f" and are stored in different ways: see '{next(kinds[kind] for kind in kinds if kind != found)}'"
        return replace(found, format=None, why=found.why or why)

    def stored_rows(self, name: str, start: int, stop: int) -> StoredRows:
        """Returns rows of a weight whose stored_as has a format, those of all its matrices counted through."""
        group = self._groups[name]
        sources = [source for _, source in group.sources]
        if group.converter is None:
            return self._files.stored_rows(sources[0], start, stop)

        def read(index: int, rows: Tensor) -> StoredRows:
            first, last = int(rows.min()), int(rows.max())
            found = self._files.stored_rows(sources[index], first, last + 1)
            return StoredRows(*(None if part is None else part[rows - first] for part in found))

        places = self._places_of(name)
        return gather_rows(read, places.tensors[start:stop], places.rows[start:stop])

    def file_of(self, name: str) -> Path:
        """Returns the file that holds the (first) source of a module tensor."""
        part = self._part(name)
        return self._files.path(self._groups[name if part is None else part.source].sources[0][1])

    def _places_of(self, name: str) -> Places | None:
        if name not in self._places:
            group = self._groups[name]
            sources = [source for _, source in group.sources]

            def convert(tensors: list[Tensor]) -> Tensor:
                return self._convert(group, dict(zip(sources, tensors, strict=True)))[self._stored_name.get(name, name)]

            shapes = [tuple(self._files.meta(source).shape) for source in sources]
            self._places[name] = find_places(shapes, convert, self.shape(name))
        return self._places[name]

    def _group(self, model: PreTrainedModel, stored: Iterable[str], others: Rename | None) -> list[_Group]:
        """Assigns each checkpoint tensor to the module tensor it belongs to, as transformers' loader does."""
        mapping = get_model_conversion_mapping(model)
        renamings = [entry for entry in mapping if isinstance(entry, WeightRenaming)]
        converters = [entry for entry in mapping if isinstance(entry, WeightConverter)]
        by_pattern = {pattern: entry for entry in converters for pattern in entry.source_patterns}
        expected = model.state_dict()
        groups: dict[str, _Group] = {}
        for name in sorted(stored, key=dot_natural_key):
            for candidate in candidates(name):
                target, pattern = _rename(candidate, renamings, converters, model.base_model_prefix, expected)
                converter = by_pattern.get(pattern)
                if target not in expected and others is not None and (other := others(candidate)) is not None:
                    target, pattern, converter = other
                if target in expected:
                    group = groups.setdefault(target, _Group(target, converter))
                    group.sources.append((pattern or name, name))
                    break
            else:
                if self._files.needs_place(name):
                    raise FileError(
                        f"{self._files.path(name)}: tensor '{name}' has no place in a model of type "
                        f"'{model.config.model_type}' as its {self._files.kind} describes it"
                    )
        return list(groups.values())

    def _convert(self, group: _Group, stored: dict[str, Tensor]) -> dict[str, Tensor]:
        if group.converter is None:
            return {group.first_target: stored[group.sources[-1][1]]}
        converter = deepcopy(group.converter)
        for pattern, source in group.sources:
            converter.add_tensor(group.first_target, source, pattern, stored[source])
        model = self._model
        converted = converter.convert(group.first_target, model=model, config=model.config)
        return {name: value[0] if isinstance(value, list) else value for name, value in converted.items()}

    def _untie(self, model: PreTrainedModel) -> None:
        """Gives tied parameters that differ in the checkpoint a storage of their own."""
        for target, source in (getattr(model, "all_tied_weights_keys", None) or {}).items():
            if target in self and source in self and not self._equal(target, source):
                parent, _, leaf = target.rpartition(".")
                own = torch.nn.Parameter(model.get_parameter(target).detach().clone(), requires_grad=False)
                setattr(model.get_submodule(parent), leaf, own)

    def _equal(self, a: str, b: str) -> bool:
        if self.shape(a) != self.shape(b):
            return False
        rows = self.shape(a)[0]
        step = 4096
        return all(
            torch.equal(self.read_rows(a, i, min(i + step, rows)), self.read_rows(b, i, min(i + step, rows)))
            for i in range(0, rows, step)
        )

    def _check(self, model: PreTrainedModel) -> None:
        """Checks that every parameter is present, with its shape. Of tied parameters one name suffices."""
        tied: dict[int, list[str]] = {}
        for name, parameter in model.named_parameters(remove_duplicate=False):
            tied.setdefault(id(parameter), []).append(name)
        missing = []
        for names in tied.values():
            present = [name for name in names if name in self]
            if not present:
                missing.append(names[0])
                continue
            for name in present:
                self._check_shape(name, tuple(model.get_parameter(name).shape))
            for name in set(names) - set(present):
                self._groups[name], self._meta[name] = self._groups[present[0]], self._meta[present[0]]
                self._stored_name[name] = present[0]
        if missing:
            shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            files = self._files
            raise FileError(f"{files.place}: the checkpoint lacks tensors that its {files.kind} asks for: {shown}")

    def _check_shape(self, name: str, expected: tuple[int, ...]) -> None:
        if self.shape(name) != expected:
            raise FileError(
                f"{self.file_of(name)}: tensor '{name}' has shape {list(self.shape(name))}, "
                f"but {self._files.kind} asks for {list(expected)}"
            )


class Shapes(WeightReader):
    """Weights of which only what the config says is known: their names, shapes and dtype."""

    def __init__(self, dtype: torch.dtype):
        self._dtype = dtype
        self._meta: dict[str, Tensor] = {}

    def bind(self, model: PreTrainedModel, others: Rename | None = None) -> None:
        for name, value in model.state_dict(keep_vars=True).items():
            dtype = self._dtype if value.is_floating_point() else value.dtype
            self._meta[name] = torch.empty(value.shape, dtype=dtype, device="meta")

    def takes_others(self) -> bool:
        return True  # of which there are none

    def stored_as(self, name: str) -> StoredAs | None:
        return None


def candidates(name: str) -> Iterable[str]:
    """Yields the names that a tensor of a checkpoint may have in its text model."""
    yield name
    for prefix, replacement in WRAPPER_PREFIXES:
        if name.startswith(prefix):
            yield replacement + name.removeprefix(prefix)


def _rename(name, renamings, converters, prefix, expected) -> tuple[str, str | None]:
    target, pattern = rename_source_key(name, renamings, converters, prefix, expected)
    if target not in expected:
        unchanged, _ = rename_source_key(name, [], [], prefix, expected)
        if unchanged in expected:
            return unchanged, None
    return target, pattern
