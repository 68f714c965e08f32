"""Makes `.mote-adapter` files of PEFT folders; docs/adapters.md says what they hold and what is accepted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from llm_export.quiet import quiet_imports

with quiet_imports():
    from llm_export.adapters.dora import gains_of
from llm_export.adapters.base import Base, Place, open_base
from llm_export.adapters.peft import LoraModule, PeftFolder, read_peft
from llm_export.errors import ProgramError
from llm_export.program.adapter_file import AdapterPart, write_adapter
from llm_export.program.replacement import replacing
from llm_runner import Model


@dataclass(frozen=True)
class AdapterReport:
    """What became of a PEFT folder."""

    path: Path
    file_bytes: int
    method: str  # "lora", "rslora" or "dora"
    num_modules: int
    ranks: tuple[int, ...]  # each once
    base: Path
    model_id: str


def make_adapter(
    folder: str | Path, base: str | Path, output: str | Path | None = None, checkpoint: str | Path | None = None
) -> AdapterReport:
    """Writes what a PEFT folder adds to a model to one file, and has the runner check it.

    base: the .mote file that it is for; output: `<folder>.mote-adapter` here unless given
    checkpoint: folder or hub id of the model that base was exported from, which DoRA's magnitudes are relative to
    Errors: FileError, ProgramError naming the field of the folder and what is accepted; those of the runner
    """
    folder, base = Path(folder), Path(base)
    path = Path(output) if output is not None else Path(f"{folder.resolve().name}.mote-adapter")
    peft = read_peft(folder)
    with Model.load(base, backend="cpu") as model:
        known = open_base(model, base)
        places = [known.place_of(module) for module in peft.modules]
        gains = gains_of(peft, places, checkpoint)
        parts = [_part(*each) for each in zip(peft.modules, places, gains, strict=True)]
        with replacing(path) as temporary:
            size = write_adapter(temporary, known.identity, parts, peft.method, peft.name, known.exporter_version)
            _check(model, temporary, path)
    ranks = tuple(sorted({len(module.a) for module in peft.modules}))
    return AdapterReport(path, size, peft.method, len(parts), ranks, base, known.identity.model_id)


def _part(module: LoraModule, place: Place, gains: Tensor | None) -> AdapterPart:
    a, b, scale = module.a, module.b, place.factor * module.scale
    if gains is not None:
        a, b, scale = a.float(), (1 + gains)[:, None] * scale * b.float(), 1.0
    return AdapterPart(module.name, place.weight, place.first_row, scale, a, b, gains)


def _check(model: Model, temporary: Path, path: Path) -> None:
    try:
        model.load_adapter(temporary).close()
    except ProgramError as error:
        raise ProgramError(str(error).replace(str(temporary), str(path))) from error


__all__ = ["AdapterReport", "Base", "PeftFolder", "make_adapter", "open_base", "read_peft"]
