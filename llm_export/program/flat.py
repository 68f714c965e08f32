"""Turns planned programs into the flatbuffer `Program` and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import flatbuffers
import numpy as np
import torch

from llm_export.errors import ProgramError
from llm_export.program import schema as fb
from llm_export.program.formats import WEIGHT_ALIGNMENT, stored_bytes
from llm_export.program.instructions import (
    CPU,
    Attribute,
    CheckFigures,
    DelegateSpec,
    Dim,
    GoldenSample,
    Instruction,
    LoweredMethod,
    MemoryPlan,
    Metadata,
    MethodPlan,
    Numbers,
    Placement,
    Value,
    storage_roots,
)
from llm_export.program.specs import AssetWeights, StateSpec, TileScales, WeightSpec

DTYPES = {
    torch.float32: fb.DType.float32,
    torch.float16: fb.DType.float16,
    torch.bfloat16: fb.DType.bfloat16,
    torch.int64: fb.DType.int64,
    torch.int32: fb.DType.int32,
    torch.int8: fb.DType.int8,
    torch.uint8: fb.DType.uint8,
    torch.bool: fb.DType.bool_,
}
KINDS = {"activation": fb.ValueKind.activation, "input": fb.ValueKind.input, "weight": fb.ValueKind.weight}
ARENAS = {"per_token": fb.Arena.per_token, "fixed": fb.Arena.fixed}
STATE_KINDS = {"kv_cache": fb.StateKind.kv_cache, "recurrent": fb.StateKind.recurrent}
SEGMENT_KINDS = {
    "weights": fb.SegmentKind.weights, "tokenizer": fb.SegmentKind.tokenizer,
    "chat_template": fb.SegmentKind.chat_template, "delegates": fb.SegmentKind.delegates,
    "asset_rest": fb.SegmentKind.asset_rest,
}  # fmt: skip
ASSET_LAYOUTS = {
    "dense": fb.AssetLayout.dense, "int8": fb.AssetLayout.int8, "int4": fb.AssetLayout.int4,
    "halves": fb.AssetLayout.halves,
}  # fmt: skip
FILE_IDENTIFIER = b"MOTP"


def inverse(table: dict) -> dict:
    return {value: key for key, value in table.items()}


@dataclass(frozen=True)
class SegmentRecord:
    """A segment: kind, offset from the start of its file, bytes, CRC-32, name of the file if it is another."""

    kind: str
    offset: int
    bytes: int
    crc32: int
    file: str = ""

    @staticmethod
    def of(table: Any) -> SegmentRecord:
        kind = inverse(SEGMENT_KINDS)[table.kind]
        return SegmentRecord(kind, table.offset, table.bytes, table.crc32, text(table.file) if table.file else "")


def build(planned: MemoryPlan, metadata: Metadata, segments: Sequence[SegmentRecord]) -> bytes:
    """Returns the finished flatbuffer."""
    program = fb.ProgramT()
    program.methods = [_method(*pair) for pair in zip(planned.program.methods, planned.methods, strict=True)]
    program.states = [_state(state) for state in planned.program.states]
    offsets, _ = weight_offsets(planned.program.weights)
    program.weights = [_weight(spec, offset) for spec, offset in zip(planned.program.weights, offsets, strict=True)]
    offsets, _ = delegate_offsets(planned.program.delegates)
    program.delegates = [
        _delegate(spec, offset) for spec, offset in zip(planned.program.delegates, offsets, strict=True)
    ]
    program.segments = [
        _table(
            fb.SegmentT, kind=SEGMENT_KINDS[s.kind], offset=s.offset, bytes=s.bytes, crc32=s.crc32, file=s.file or None
        )
        for s in segments
    ]  # fmt: skip
    program.goldenSamples = [_golden(sample) for sample in metadata.golden_samples]
    program.provenance = _provenance(metadata)
    program.vocabSize = metadata.vocab_size
    program.maxPositionEmbeddings = metadata.max_position_embeddings
    program.bosTokenId = metadata.bos_token_id
    program.eosTokenIds = list(metadata.eos_token_ids)
    program.generationConfig = metadata.generation_config
    program.check = _check(metadata.check) if metadata.check else None
    program.embedding = metadata.embedding or None
    program.asset = _asset(planned.program.asset) if planned.program.asset else None
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(program.Pack(builder), file_identifier=FILE_IDENTIFIER)
    return bytes(builder.Output())


def weight_offsets(weights: Sequence[WeightSpec]) -> tuple[list[int], int]:
    """Offset of each weight in the weights segment, and the bytes of the segment."""
    return _offsets(stored_bytes(spec) for spec in weights)


def delegate_offsets(delegates: Sequence[DelegateSpec]) -> tuple[list[int], int]:
    """Offset of each blob in the delegates segment, and the bytes of the segment."""
    return _offsets(len(spec.blob) for spec in delegates)


def rest_offsets(asset: AssetWeights) -> tuple[list[int], int]:
    """Offset of what the asset does not hold of each weight in its segment, and the bytes of the segment."""
    return _offsets(len(weight.rest) for weight in asset.weights)


def _offsets(sizes: Iterable[int]) -> tuple[list[int], int]:
    offsets, end = [], 0
    for size in sizes:
        offsets.append(-(-end // WEIGHT_ALIGNMENT) * WEIGHT_ALIGNMENT)
        end = offsets[-1] + size
    return offsets, end


def _table(kind: type, /, **fields: Any) -> Any:
    table = kind()
    for name, value in fields.items():
        setattr(table, name, value)
    return table


def _dims(sizes: Sequence[Dim]) -> list:
    return [_table(fb.DimT, tokens=size.tokens, constant=size.constant) for size in sizes]


def _method(method: LoweredMethod, plan: MethodPlan) -> fb.MethodT:
    return _table(
        fb.MethodT,
        name=method.name,
        values=[_value(value, place) for value, place in zip(method.values, plan.placements, strict=True)],
        inputs=list(method.inputs),
        inputNames=list(method.input_names),
        outputs=list(method.outputs),
        instructions=[_instruction(instruction) for instruction in method.instructions],
        minTokens=method.min_tokens,
        maxTokens=method.max_tokens,
        perTokenBytes=plan.per_token_bytes,
        fixedBytes=plan.fixed_bytes,
        target=method.target,
    )


def _value(value: Value, place: Placement | None) -> fb.ValueT:
    place = place or Placement("per_token", 0, 0)
    return _table(
        fb.ValueT, kind=KINDS[value.kind], dtype=DTYPES[value.dtype], shape=_dims(value.shape), weight=value.weight,
        aliasOf=value.alias_of, arena=ARENAS[place.arena], offset=place.offset, bytes=place.bytes,
    )  # fmt: skip


def _instruction(instruction: Instruction) -> fb.InstructionT:
    return _table(
        fb.InstructionT, op=instruction.op, inputs=list(instruction.inputs), outputs=list(instruction.outputs),
        attributes=[_attribute(name, value) for name, value in instruction.attributes.items()],
        origin=instruction.origin,
    )  # fmt: skip


def _attribute(name: str, value: Attribute) -> fb.AttributeT:
    if isinstance(value, str):
        return _table(fb.AttributeT, name=name, text=value)
    if isinstance(value, Numbers):
        return _table(fb.AttributeT, name=name, numbers=list(value.values))
    return _table(fb.AttributeT, name=name, dims=_dims(value))


def _state(state: StateSpec) -> fb.StateT:
    return _table(
        fb.StateT, name=state.name, kind=STATE_KINDS[state.kind], numHeads=state.num_heads, headDim=state.head_dim,
        valueHeadDim=state.value_head_dim, window=state.window, numSinkPositions=state.num_sink_positions,
        shape=list(state.shape), stride=state.stride,
    )  # fmt: skip


def _weight(spec: WeightSpec, offset: int) -> fb.WeightT:
    scales = spec.scales or TileScales(0, of_rows=True)
    weight = _table(
        fb.WeightT, name=spec.name, dtype=DTYPES[torch.int8 if spec.bits else spec.dtype], bits=spec.bits,
        groupSize=spec.group_size if spec.bits else 0, shape=list(spec.shape), offset=offset, bytes=stored_bytes(spec),
        scaleColumns=scales.columns, low=getattr(fb.WeightOffset, scales.offset), rowScales=scales.of_rows,
        codebook=np.array(scales.codebook, np.int8) if scales.codebook else None,
    )  # fmt: skip
    weight.sourceRows = list(spec.source_rows) or None
    return weight


def _asset(asset: AssetWeights) -> fb.AssetT:
    offsets, _ = rest_offsets(asset)
    weights = [
        _table(
            fb.AssetWeightT, layout=ASSET_LAYOUTS[weight.layout], pieces=list(weight.pieces),
            multipliers=list(weight.multipliers) or None, scales=list(weight.scales) or None, rest=offset,
        )
        for weight, offset in zip(asset.weights, offsets, strict=True)
    ]  # fmt: skip
    return _table(fb.AssetT, bytes=asset.bytes, weights=weights)


def _delegate(spec: DelegateSpec, offset: int) -> fb.DelegateT:
    return _table(
        fb.DelegateT, backend=spec.backend, weights=list(spec.weights), offset=offset, bytes=len(spec.blob),
        ops=list(spec.ops), opCounts=list(spec.ops.values()),
    )  # fmt: skip


def _golden(sample: GoldenSample) -> fb.GoldenSampleT:
    return _table(
        fb.GoldenSampleT, text=sample.text, promptIds=list(sample.prompt_ids), expectedIds=list(sample.expected_ids),
        probeIds=list(sample.probe_ids), probeLogits=list(sample.probe_logits), tolerance=sample.tolerance,
        method=sample.method or None,
    )  # fmt: skip


def _provenance(metadata: Metadata) -> fb.ProvenanceT:
    p = metadata.provenance
    return _table(
        fb.ProvenanceT, modelId=p.model_id, revision=p.revision, modelType=p.model_type, recipe=p.recipe,
        exporterVersion=p.exporter_version, torchVersion=p.torch_version, transformersVersion=p.transformers_version,
        license=p.license,
    )  # fmt: skip


def _check(figures: CheckFigures) -> fb.CheckT:
    return _table(
        fb.CheckT, mode=figures.mode, medianRelativeError=figures.median_relative_error,
        maxRelativeError=figures.max_relative_error, tolerance=figures.tolerance, top1Agreement=figures.top1_agreement,
        numPositions=figures.num_positions,
    )  # fmt: skip


def parse(buffer: bytes) -> fb.ProgramT:
    """Reads a flatbuffer that this exporter wrote; no check of untrusted files. Errors: ProgramError if malformed."""
    if len(buffer) < 8 or buffer[4:8] != FILE_IDENTIFIER:
        raise ProgramError("the flatbuffer does not carry the identifier MOTP")
    try:
        return fb.ProgramT.InitFromObj(fb.Program.GetRootAs(buffer, 0))
    except (IndexError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise ProgramError(f"the flatbuffer is malformed: {error}") from error


def text(value: bytes | str | None) -> str:
    return value.decode() if isinstance(value, bytes) else (value or "")


def method_of(table: fb.MethodT) -> tuple[LoweredMethod, MethodPlan]:
    kinds, dtypes, arenas = inverse(KINDS), inverse(DTYPES), inverse(ARENAS)
    values, places = [], []
    for item in table.values:
        shape = tuple(Dim(size.tokens, size.constant) for size in item.shape)
        values.append(Value(kinds[item.kind], dtypes[item.dtype], shape, weight=item.weight, alias_of=item.aliasOf))
        places.append(Placement(arenas[item.arena], item.offset, item.bytes))
    for index, root in enumerate(storage_roots(values)):
        if values[root].kind == "weight":
            places[index] = None
    method = LoweredMethod(
        text(table.name), values, list(table.inputs), [text(name) for name in table.inputNames], list(table.outputs),
        [_instruction_of(item) for item in table.instructions], table.minTokens, table.maxTokens,
        text(table.target) or CPU,
    )  # fmt: skip
    return method, MethodPlan(tuple(places), table.perTokenBytes, table.fixedBytes)


def _instruction_of(table: fb.InstructionT) -> Instruction:
    attributes: dict[str, Attribute] = {}
    for item in table.attributes or []:
        if item.text is not None:
            attributes[text(item.name)] = text(item.text)
        elif item.numbers is not None:
            attributes[text(item.name)] = Numbers(tuple(item.numbers))
        else:
            attributes[text(item.name)] = tuple(Dim(size.tokens, size.constant) for size in item.dims)
    return Instruction(text(table.op), list(table.inputs), list(table.outputs), attributes, text(table.origin))
