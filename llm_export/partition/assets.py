"""Assets beside a file: what a backend makes of all its parts, with the only copy of the weights that they read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from llm_export.errors import ArgumentError, ProgramError
from llm_export.partition import Partitioned
from llm_export.partition.backend import Backend, Read
from llm_export.partition.targets import Target
from llm_export.program.instructions import LoweredMethod, Program
from llm_export.program.replacement import replacing_folder


@dataclass(frozen=True)
class Asset:
    """What a backend makes beside a file. folder: where it is made, does not exist yet   path: that it gets"""

    maker: Backend
    folder: Path
    path: Path


@contextlib.contextmanager
def making_asset(maker: Backend | None, path: Path) -> Iterator[Asset | None]:
    """Yields where the asset of a file is made, which takes its place if the block succeeds; None: nobody makes one."""
    if maker is None:
        yield None
        return
    place = path.with_suffix(maker.asset_suffix)
    with replacing_folder(place) as made:
        yield Asset(maker, made, place)


def asset_maker(targets: Sequence[Target]) -> Backend | None:
    """The backend that makes an asset, if one does.

    Errors: ArgumentError if others are to run the file too: they would need the weights a second time
    """
    makers = [backend for target in targets for backend in target.backends if backend.asset_suffix]
    if makers and (len(targets) > 1 or len(targets[0].backends) > 1):
        ways = ",".join(target.name for target in targets)
        raise ArgumentError(
            f"backend = '{ways}': {makers[0].name} keeps the weights in an asset of its own, so the others would need "
            f"them a second time: must be {makers[0].name} alone, and another file for the others"
        )
    return makers[0] if makers else None


def assemble(partitioned: Partitioned, asset: Asset, read: Read, context_length: int) -> Partitioned:
    """Makes the asset; the file keeps the weights that the CPU reads.

    context_length: positions that the model can see
    Errors: ProgramError if the backend does not take all instructions, or the CPU reads a weight of the asset too
    """
    program, maker = partitioned.program, asset.maker
    _check_whole(partitioned, maker)
    kept = sorted({value.weight for method in program.methods for value in method.values if value.weight >= 0})
    inside = {value.weight for part in partitioned.parts for value in part.method.values if value.weight >= 0}
    twice = [program.weights[index] for index in kept if index in inside and program.weights[index].bits]
    if twice:
        raise ProgramError(
            f"{maker.name}: the CPU reads '{twice[0].name}' too, so a file and its asset would hold it twice: "
            "mote export --backend cpu makes a file of the whole model"
        )
    blobs = maker.assemble(partitioned.parts, read, asset.folder, asset.path.name, context_length)
    delegates = [replace(spec, blob=blob) for spec, blob in zip(program.delegates, blobs, strict=True)]
    number = {old: new for new, old in enumerate(kept)}
    return replace(
        partitioned,
        program=Program(
            [_renumbered(method, number) for method in program.methods],
            program.states,
            [program.weights[index] for index in kept],
            program.constants,
            delegates,
        ),
    )


def _check_whole(partitioned: Partitioned, maker: Backend) -> None:
    """No runner joins the functions of an asset with the CPU's kernels yet."""
    refusals = partitioned.refusals
    if refusals:
        first, others = refusals[0], len(refusals) - 1
        more = f", nor {others} further instructions" if others else ""
        raise ProgramError(
            f"{maker.name}: does not take {first.op} of '{first.origin}' in {first.method} ({first.reason}){more}: its "
            "asset must hold the whole model"
        )


def _renumbered(method: LoweredMethod, number: dict[int, int]) -> LoweredMethod:
    values = [replace(value, weight=number.get(value.weight, -1)) for value in method.values]
    return replace(method, values=values)
