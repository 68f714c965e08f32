"""Assets beside a file: what a backend makes of all its parts, with the only copy of the weights that they read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from llm_export.errors import ArgumentError, ProgramError
from llm_export.partition import Partitioned
from llm_export.partition.backend import Backend, Read
from llm_export.partition.targets import Target
from llm_export.program.flat import weight_offsets
from llm_export.program.instructions import CPU, LoweredMethod
from llm_export.program.replacement import replacing, replacing_folder
from llm_export.program.specs import AssetWeights, WeightSpec
from llm_export.program.writer import write_segment

# Of weights that an asset holds in no form that the CPU's can be made of: more of them would be there twice.
MOST_REST_BYTES, MOST_REST_SHARE = 1 << 16, 0.02


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

    Errors: ArgumentError if others than the CPU are to run the file too: they would need the weights a second time
    """
    makers = [backend for target in targets for backend in target.backends if backend.asset_suffix]
    others = [target for target in targets if target.backends and target.backends != tuple(makers)]
    if makers and others:
        ways, name = ",".join(target.name for target in targets), makers[0].name
        raise ArgumentError(
            f"backend = '{ways}': {name} keeps the weights in an asset of its own, so the others would need them a "
            f"second time: must be {name},cpu or {name} alone, and another file for the others"
        )
    return makers[0] if makers else None


def assemble(partitioned: Partitioned, asset: Asset, read: Read, context_length: int) -> Partitioned:
    """Makes the asset; the file keeps the weights that the CPU reads, or says where in the asset they are.

    context_length: positions that the model can see
    Errors: ProgramError if the backend does not take all instructions, or the CPU reads a weight of the asset in the
        backend's own target, or one that the asset holds in another form
    """
    program, maker = partitioned.program, asset.maker
    _check_whole(partitioned, maker)
    beside = _read_by(method for method in program.methods if method.target == maker.name)
    inside = _read_by(part.method for part in partitioned.parts)
    twice = [program.weights[index] for index in beside if index in inside and program.weights[index].bits]
    if twice:
        raise _twice(maker, twice[0])
    kept = _read_by(program.methods)
    number = {old: new for new, old in enumerate(kept)}
    weights, places = [program.weights[index] for index in kept], None
    if any(method.target == CPU for method in program.methods):
        blobs, places = _shared(partitioned, asset, weights, read, context_length)
    else:
        blobs = maker.assemble(partitioned.parts, read, asset.folder, asset.path.name, context_length).blobs
    reduced = replace(
        program,
        methods=[_renumbered(method, number) for method in program.methods],
        weights=weights,
        delegates=[replace(spec, blob=blob) for spec, blob in zip(program.delegates, blobs, strict=True)],
        asset=places,
    )
    return replace(partitioned, program=reduced)


def _read_by(methods: Iterable[LoweredMethod]) -> list[int]:
    """The weights that methods read, delegates aside."""
    return sorted({value.weight for method in methods for value in method.values if value.weight >= 0})


def _twice(maker: Backend, spec: WeightSpec) -> ProgramError:
    return ProgramError(
        f"{maker.name}: the CPU reads '{spec.name}' too, so a file and its asset would hold it twice: "
        "mote export --backend cpu makes a file of the whole model"
    )


def _shared(
    partitioned: Partitioned, asset: Asset, weights: Sequence[WeightSpec], read: Read, context_length: int
) -> tuple[list[bytes], AssetWeights]:
    """Makes an asset whose weights serve the CPU too. Each is quantized once, to a file that goes again."""
    maker, name = asset.maker, asset.path.name
    with replacing(asset.path.with_suffix(".tiles"), stays=lambda new: True) as tiles:
        checksum, stored = write_segment(tiles, weights, read)
        there = set(weights)
        either = lambda spec: stored(spec) if spec in there else read(spec)  # noqa: E731
        made = maker.assemble(partitioned.parts, either, asset.folder, name, context_length)
        places = tuple(made.place(spec) for spec in weights)
        heavy = next((s for s, place in zip(weights, places, strict=True) if len(place.rest) > MOST_REST_BYTES), None)
        file_bytes = (asset.folder / made.file).stat().st_size
        if heavy is not None and sum(len(place.rest) for place in places) > MOST_REST_SHARE * file_bytes:
            raise _twice(maker, heavy)
        return made.blobs, AssetWeights(f"{name}/{made.file}", file_bytes, places, weight_offsets(weights)[1], checksum)


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
