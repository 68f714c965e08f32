"""`export`: the whole way from a checkpoint to a `.mote` file."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from torch import Tensor

from llm_export.quiet import quiet_imports

with quiet_imports():
    from llm_export.capture import capture
from llm_export.calibrate import Calibration, calibrate, count_matrices, opened
from llm_export.calibrate.planner import count_steps, plan_bits
from llm_export.calibrate.text import DEFAULT, read_sequences
from llm_export.capture.draft_heads import DraftHeadWarning
from llm_export.capture.latent_attention import absorb
from llm_export.capture.methods import Captured
from llm_export.check import CheckResult, check_targets, choose_mode
from llm_export.check.assets import opened_by_asset
from llm_export.check.embeddings import blank_embeddings, check_embeddings
from llm_export.check.golden import blank_figures, blank_samples, figures, golden_samples, make_prompts
from llm_export.check.oracle import Oracle
from llm_export.checkpoint import TOKENIZER_FILES, Checkpoint, open_checkpoint, with_assistant
from llm_export.checkpoint.gguf.reader import model_name
from llm_export.checkpoint.metadata import make_metadata
from llm_export.checkpoint.tokenizer import check_compiled_tokenizer
from llm_export.errors import ArgumentError, FileError
from llm_export.instructions import lower
from llm_export.partition import Partitioned, Refusal, partition
from llm_export.partition.assets import Asset, assemble, asset_maker, making_asset
from llm_export.partition.backend import Backend
from llm_export.partition.targets import Target, all_take, parse_targets
from llm_export.passes import Fused, fuse
from llm_export.plan import plan
from llm_export.program.formats import stored_bytes
from llm_export.program.instructions import CPU, GoldenSample, Program
from llm_export.program.replacement import replacing
from llm_export.program.specs import WeightSpec
from llm_export.program.writer import replace_metadata, write_beginning, write_program
from llm_export.progress import PrivateMemory, Progress
from llm_export.quantize import Override, QuantizationWarning, Quantized, Recipe, quantize
from llm_export.quantize.encode import encode
from llm_export.quantize.recipes import CHANNEL, KEEPING, SCHEMES

# Assets of more weights are not checked unasked: an interpreter dequantizes all of them on each call.
MOST_INTERPRETED_BYTES = 64 << 20
OTHER_TOKENIZERS = ("vocab.json", "vocab.txt")


@dataclass
class ExportReport:
    """What an export did."""

    path: Path
    file_bytes: int
    seconds: float
    stage_seconds: dict[str, float]
    peak_private_bytes: int  # anonymous memory of the process, imports included; 0 where the system does not tell
    check: CheckResult | None  # None: the check was off
    notes: list[str] = field(default_factory=list)  # what the recipe could not do, what was not checked
    refusals: list[Refusal] = field(default_factory=list)  # what backends do not run, and why
    num_delegated: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)  # as in Partitioned
    weights_file: Path | None = None  # where the weights are, if not in the file
    asset: Path | None = None  # the folder beside the file that holds what a backend made of the model, if one does


def export(
    source: str | Path,
    output: str | Path | None = None,
    *,
    recipe: str | None = None,
    requantize: bool = False,
    group_size: int | str | None = None,
    embedding_bits: int = 8,
    inputs: str = "rotated",
    overrides: Sequence[str] = (),
    calibration: str | Path | None = None,
    target_bits: float | None = None,
    backends: str | Sequence[str | Backend] = CPU,
    check: str | None = None,
    tokenizer: bool | str | Path = True,
    embed: bool | None = None,
    assistant: str | Path | None = None,
    weights_file: str | Path | None = None,
    revision: str | None = None,
    show_progress: bool | None = None,
    **checkpoint_options,
) -> ExportReport:
    """Exports a checkpoint to one `.mote` file.

    source: folder, hub id or GGUF file   output: None: `<model>.mote` here
    recipe, group_size, embedding_bits, inputs, overrides: docs/quantization.md; an override is
        `PATTERN=SCHEME[:GROUP_SIZE]`. Recipe None: "stored" for a checkpoint that is quantized, unless what
        follows is given, else "8da4w"; "stored-float" and "4w" for a backend that takes no rounded inputs, "8w" for
        one that takes no groups. Group size None: 32, "channel" for a backend that takes no groups
    requantize: what is stored quantized is quantized a second time, with the recipe; recipe None: "8da4w"
    calibration: a text, or a `.jsonl` of conversations, on which the rounding of weights is chosen; "default": a sample
    target_bits: of a weight on average; each gets the bits with which predictions of that text lose least
    backends: ways to run the file, the best first: "xnnpack,cpu" or [XnnpackBackend(...), "cpu"]; the CPU runs what a
        backend does not
    check: "full", "layers" or "off"; None: the fullest that fits the memory   show_progress: None: on a terminal
    tokenizer: False leaves tokenizer and chat template out; such a file takes token ids only. A folder: they are taken
        from there
    embed: True adds what gives embeddings; None: if the checkpoint is made for that, and then it does nothing else
    assistant: folder or hub id of a checkpoint that drafts for this one, an EAGLE-3 head or one of Gemma 4's
        assistants; it becomes part of the file
    weights_file: a `.motew` file in the folder of `output` for the weights; exports with the same weights share it
    checkpoint_options: subfolder, token, cache_dir, local_files_only, trust_remote_code, as in `from_pretrained`
    Errors: MoteError; whatever happens, `output` and `weights_file` are either whole or as they were before
    """
    started = time.perf_counter()
    targets = parse_targets(backends)
    maker = _ready(targets, weights_file, check, recipe)
    chosen = _recipe(targets, recipe, group_size, embedding_bits, inputs)
    elsewhere = Path(weights_file) if weights_file is not None else None
    how = _How.of(chosen, overrides, targets, check, calibration, target_bits, elsewhere)
    _check_rounding(recipe, requantize, calibration, target_bits)
    path = Path(output) if output is not None else Path(default_name(source))
    progress = Progress(show_progress)
    with (
        PrivateMemory() as memory,
        _making(path, how.weights_file) as new,
        making_asset(maker, path) as asset,
        _caught() as caught,
    ):
        with progress.stage("open"):
            checkpoint_options |= {"revision": revision, "embed": embed, "tokenizer": tokenizer}
            checkpoint = _opened(source, assistant, targets, maker, checkpoint_options)
            if recipe is None and not requantize:
                how = _kept_if_quantized(checkpoint, how)
            notes = _source_notes(checkpoint, how.recipe, requantize)
            notes += _check_tokenizer(checkpoint, tokenizer is not False)
        written = _write_checked(checkpoint, how, new, asset, progress)
    return ExportReport(
        path=path,
        file_bytes=path.stat().st_size,
        seconds=time.perf_counter() - started,
        stage_seconds=progress.seconds,
        peak_private_bytes=memory.peak_bytes,
        check=written.check,
        notes=[*notes, *(str(entry.message) for entry in caught), *written.notes],
        refusals=written.partitioned.refusals,
        num_delegated=written.partitioned.num_delegated,
        weights_file=elsewhere,
        asset=asset.path if asset else None,
    )


def _ready(
    targets: Sequence[Target], weights_file: str | Path | None, check: str | None, recipe: str | None
) -> Backend | None:
    """Checks that all backends can work, and gives the one that makes an asset, if one does. Errors: ArgumentError"""
    choose_mode(check or "off", {})
    maker = asset_maker(targets)
    for backend in (backend for target in targets for backend in target.backends):
        backend.check_installed()
        if recipe in SCHEMES and SCHEMES[recipe].activations != "float" and not backend.takes_rounded_inputs:
            others = ", ".join(name for name, scheme in SCHEMES.items() if scheme.activations == "float")
            raise ArgumentError(
                f"recipe = '{recipe}': {backend.name} takes no inputs that are rounded to int8: must be one of {others}"
            )
    if maker is not None and weights_file is not None:
        raise ArgumentError(f"weights_file = {weights_file}: must be absent: {maker.name} keeps weights in its asset")
    return maker


def _recipe(targets: Sequence[Target], name: str | None, group_size: int | str | None, *others) -> Recipe:
    takes_groups = all_take(targets, "takes_groups")
    if not takes_groups and group_size not in (None, CHANNEL):
        name = next(f"{b.name}:{b.profile}" for target in targets for b in target.backends if not b.takes_groups)
        raise ArgumentError(f"group_size = {group_size}: {name} takes one scale for each row: must be channel")
    usual = "8da4w" if all_take(targets, "takes_rounded_inputs") else "4w" if takes_groups else "8w"
    return Recipe(name or usual, group_size or (32 if takes_groups else CHANNEL), *others)


def _opened(
    source: str | Path, assistant: str | Path | None, targets: Sequence[Target], maker: Backend | None, options: dict
) -> Checkpoint:
    """Opens a checkpoint, with what drafts for it where the targets can run that. options: of open_checkpoint"""
    checkpoint = open_checkpoint(source, **options)
    if maker is not None:
        checkpoint.without_head = f"the CPU would read weights that {maker.name} keeps in its asset"
    if assistant is None:
        return checkpoint
    given = {name: options[name] for name in ("token", "cache_dir", "local_files_only") if name in options}
    joined = with_assistant(checkpoint, assistant, **given)
    owner = next((each.name for target in targets for each in target.backends if each.owns_states), None)
    if owner is not None and joined.assistant is not None and joined.assistant.reads_caches:
        raise ArgumentError(
            f"assistant = {assistant}: reads keys and values, which {owner} keeps on its device: must be absent, or "
            "the backends those that leave keys and values to the CPU, such as xnnpack,cpu"
        )
    return joined


def outline(
    source: str | Path,
    output: str | Path,
    *,
    recipe: str = "8da4w",
    group_size: int | str = 32,
    embedding_bits: int = 8,
    inputs: str = "rotated",
    overrides: Sequence[str] = (),
    **checkpoint_options,
) -> None:
    """Writes the beginning of the file that `export` would write, without its weights: `mote advise` takes it.

    source: a folder, whose config.json is enough, or a hub id, of which the config is downloaded; other arguments as
        for `export`
    Errors: MoteError
    """
    checkpoint = open_checkpoint(source, weights=False, tokenizer=False, **checkpoint_options)
    how = _How.of(Recipe(recipe, group_size, embedding_bits, inputs), overrides, parse_targets(CPU))
    with _caught():
        quantized = how.quantize(capture(checkpoint), checkpoint)
        planned = plan(partition(lower(fuse(quantized)), how.targets))
    metadata = make_metadata(checkpoint, quantized.vocab_size, quantized.recipe)
    with replacing(Path(output)) as new:
        write_beginning(new, planned, metadata)


def _check_rounding(
    recipe: str | None, requantize: bool, calibration: str | Path | None, target_bits: float | None
) -> None:
    given = {"requantize": requantize or None, "calibration": calibration, "target_bits": target_bits}
    for name, value in given.items():
        if value is not None and recipe in ("none", *KEEPING):
            raise ArgumentError(f"{name} = {value}: recipe = '{recipe}' rounds no weight: must be another recipe")
    if target_bits is not None and not 2 <= target_bits <= 9:
        raise ArgumentError(f"target_bits = {target_bits}: must be at least 2 and at most 9 bits a weight")


@contextlib.contextmanager
def _making(output: Path, weights_file: Path | None) -> Iterator[Path]:
    """Yields the file to write. If the block fails, neither it nor a new `weights_file` stays."""
    if weights_file is not None and (
        weights_file.suffix != ".motew" or weights_file.parent.resolve() != output.parent.resolve()
    ):
        raise ArgumentError(
            f"weights_file = {weights_file}: must be a name that ends in .motew, in the folder of {output}, such as "
            f"{output.with_suffix('.motew')}"
        )
    added = [weights_file] if weights_file is not None and not weights_file.exists() else []
    try:
        with replacing(output) as new:
            yield new
    except BaseException:
        for file in added:
            file.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _caught() -> Iterator[list[warnings.WarningMessage]]:
    """Yields the list of the warnings of quantizers and of draft heads; others are ignored."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", QuantizationWarning)
        warnings.simplefilter("always", DraftHeadWarning)
        yield caught


def default_name(source: str | Path) -> str:
    """Returns `<model>.mote` for a hub id, a folder or a GGUF file."""
    folder = Path(source)
    if folder.suffix.lower() == ".gguf":
        return f"{model_name(folder)}.mote"
    return f"{folder.resolve().name if folder.is_dir() else str(source).rpartition('/')[2]}.mote"


def _kept_if_quantized(checkpoint: Checkpoint, how: _How) -> _How:
    """Chooses to keep what is quantized, if nothing says otherwise.

    Errors: FileError if a folder has weights whose numbers no tiles hold; of a GGUF file these get a note each
    """
    weights = checkpoint.weights
    if how.calibration is not None or how.target_bits is not None or not weights.is_quantized():
        return how
    found = {
        name: stored for name in weights.names() if (stored := weights.stored_as(name)) and stored.format is None
    }
    if found and checkpoint.folder.is_dir():
        first, stored = next(iter(found.items()))
        raise FileError(
            f"{weights.file_of(first)}: {stored.why}. So {_counted(len(found), 'weight')} ({stored.name}) cannot be "
            f"kept as stored: --requantize quantizes what is stored a second time, with --recipe or {how.recipe.name}; "
            "--recipe none keeps the values"
        )
    name = "stored" if all_take(how.targets, "takes_rounded_inputs") else "stored-float"
    return replace(how, recipe=replace(how.recipe, name=name))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _source_notes(checkpoint: Checkpoint, recipe: Recipe, requantize: bool) -> list[str]:
    if not checkpoint.weights.is_quantized():
        return [f"{checkpoint.folder.name} holds no quantized weights: --requantize does nothing"] if requantize else []
    if recipe.name == "none" or recipe.name in KEEPING:
        return []
    kept = "" if requantize else "; without --recipe they stay as they are, where tiles hold them"
    return [f"{checkpoint.folder.name} holds quantized weights, which {recipe.name} quantizes a second time{kept}"]


def _check_tokenizer(checkpoint: Checkpoint, wanted: bool) -> list[str]:
    """Returns what the user should know of the tokenizer.

    Errors: FileError if the runner has no such tokenizer, or its compiled form differs from the original
    """
    hint = "export with --no-tokenizer for a file that takes token ids only"
    if not wanted:
        return []
    if checkpoint.tokenizer is None:
        other = next((name for name in OTHER_TOKENIZERS if (checkpoint.folder / name).is_file()), None)
        if other is not None:
            raise FileError(
                f"{checkpoint.folder / other}: only {', '.join(TOKENIZER_FILES)} are read; make a tokenizer.json with "
                f"AutoTokenizer.from_pretrained(...).save_pretrained(...), or {hint}"
            )
        return [
            f"{checkpoint.folder} has no tokenizer ({', '.join(TOKENIZER_FILES)}), so the file has none: it takes "
            "token ids only, and 'mote run' and 'mote chat' cannot use it. Put the tokenizer's files there and export "
            "again, or give --no-tokenizer to say that this is wanted"
        ]
    try:
        check_compiled_tokenizer(checkpoint.tokenizer)
    except FileError as error:
        raise FileError(f"{error}; {hint}") from error
    return []


@dataclass(frozen=True)
class _How:
    """What the user chose."""

    recipe: Recipe
    overrides: list[Override]
    targets: list[Target]
    check: str | None = None
    calibration: str | Path | None = None
    target_bits: float | None = None
    weights_file: Path | None = None

    @classmethod
    def of(cls, recipe: Recipe, overrides: Sequence[str], *others) -> _How:
        return cls(recipe, [Override.parse(text) for text in overrides], *others)

    def quantize(self, captured: Captured, checkpoint: Checkpoint, planned: Sequence[Override] = ()) -> Quantized:
        backends = [backend for target in self.targets for backend in target.backends]
        return quantize(
            absorb(captured) if all(backend.takes_values_in_keys for backend in backends) else captured,
            self.recipe,
            [*planned, *self.overrides],
            signed=all(backend.takes_signed_multipliers for backend in backends),
            rotated=all(backend.takes_rotated_inputs for backend in backends),
            stored_as=checkpoint.weights.stored_as,
        )


@dataclass(frozen=True)
class _Written:
    partitioned: Partitioned
    check: CheckResult | None
    notes: list[str]


def _write_checked(
    checkpoint: Checkpoint, how: _How, path: Path, asset: Asset | None, progress: Progress
) -> _Written:
    """Takes a checkpoint through all stages to a checked file."""
    with progress.stage("capture"):
        captured = capture(checkpoint)
    with progress.stage("quantize"):
        quantized = how.quantize(captured, checkpoint)
    with progress.stage("passes"):
        fused = fuse(quantized)
    sequences = _sequences(checkpoint, how, fused, progress)
    if how.target_bits is not None:
        with progress.stage("plan bits", count_steps(fused), "linears") as bar:
            bits = plan_bits(fused, checkpoint, sequences, how.target_bits, how.overrides, bar.update)
            # The passes have changed the graphs that were captured first.
            quantized = how.quantize(capture(checkpoint), checkpoint, bits)
            fused = fuse(quantized)
    words = f" calibration={Path(how.calibration).name}" if how.calibration is not None else ""
    metadata = make_metadata(checkpoint, quantized.vocab_size, quantized.recipe + words)
    with _calibrated(checkpoint, how, fused, sequences, progress) as calibrated:
        with progress.stage("instructions"):
            lowered = lower(fused)
        with progress.stage("partition"):
            partitioned = partition(lowered, how.targets)
        if asset is not None:
            with progress.stage("asset", _total_bytes(partitioned.program), "B") as bar:
                read = _encoder(checkpoint, partitioned.program, calibrated, bar)
                partitioned = assemble(partitioned, asset, read, metadata.max_position_embeddings)
        with progress.stage("plan"):
            planned = plan(partitioned)
        names = [target.name for target in how.targets]
        mode, names, unchecked = _mode(how, names, quantized, asset)
        max_length = min(metadata.max_position_embeddings, quantized.max_tokens)
        prompts = make_prompts(checkpoint, quantized.vocab_size, max_length) if mode != "off" else []
        with progress.stage("write", _total_bytes(planned.program), "B") as bar:
            samples = blank_samples(prompts) if checkpoint.generates else ()
            samples += blank_embeddings(prompts) if checkpoint.embedding is not None else ()
            blank = replace(metadata, golden_samples=samples, check=blank_figures(mode) if prompts else None)
            read = _encoder(checkpoint, planned.program, calibrated, bar)
            write_program(path, planned, blank, read, how.weights_file)
        if mode == "off":
            return _Written(partitioned, None, unchecked)
        with progress.stage("check"):
            oracle = Oracle(checkpoint, quantized.weights, keep=mode == "full", calibrated=calibrated)
            with opened_by_asset(path, asset, names, planned.program) as models:
                rounding = {target.name: target.rounding for target in how.targets}
                made = _check(path, names, oracle, checkpoint, prompts, mode, max_length, models, rounding)
            result, samples, notes = made
            replace_metadata(path, planned, replace(metadata, golden_samples=samples, check=figures(result)))
        return _Written(partitioned, result, [*unchecked, *notes])


def _mode(
    how: _How, names: list[str], quantized: Quantized, asset: Asset | None
) -> tuple[str, list[str], list[str]]:
    """How to check which targets, and a note if that is not all of them though nobody said so."""
    weights = sum(stored_bytes(spec) for spec in quantized.weights.values())
    if asset is None or how.check is not None or weights <= MOST_INTERPRETED_BYTES:
        return choose_mode(how.check, quantized.weights), names, []
    left = [name for name in names if name == CPU]
    without = "" if left else ", and without golden samples"
    return choose_mode(None, quantized.weights) if left else "off", left, [
        f"not checked on {asset.maker.name}{without}: an interpreter runs it here, which takes long for "
        f"{weights / 1e6:.0f} MB of weights; --check full or layers does it"
    ]


def _sequences(checkpoint: Checkpoint, how: _How, fused: Fused, progress: Progress) -> list[Tensor]:
    """Returns what is measured on: nothing where nothing is to be measured."""
    if how.calibration is None and how.target_bits is None:
        return []
    with progress.stage("text"):
        positions = make_metadata(checkpoint, fused.vocab_size, "").max_position_embeddings
        length = min(positions, fused.max_tokens)
        return read_sequences(how.calibration or DEFAULT, checkpoint, fused.vocab_size, length)


@contextlib.contextmanager
def _calibrated(
    checkpoint: Checkpoint, how: _How, fused: Fused, sequences: Sequence[Tensor], progress: Progress
) -> Iterator[Calibration]:
    """Yields what calibration made of weights, nothing where none is wanted; it is kept until the block succeeds."""
    if how.calibration is None:
        yield {}
        return
    with opened(checkpoint, fused, sequences) as results:
        with progress.stage("calibrate", count_matrices(fused), "matrices") as bar:
            calibrate(fused, checkpoint, sequences, results, bar.update)
        yield results


def _check(
    path, names, oracle, checkpoint, prompts, mode, max_length, models, rounding
) -> tuple[CheckResult, tuple[GoldenSample, ...], list[str]]:
    """Checks what the file can do. Returns: what was found, of the text that it generates if it does; samples; notes"""
    if not checkpoint.generates:
        result, samples = check_embeddings(path, names, oracle, prompts, mode)
        result.embedding_error = result.max_relative_error
        return result, samples, []
    result, notes = check_targets(path, names, oracle, prompts, mode, max_length, models, rounding)
    samples = golden_samples(result, max(rounding.values(), default=0.0))
    if checkpoint.embedding is not None:
        of_vectors, golden = check_embeddings(path, names, oracle, prompts, mode)
        result.embedding_error = of_vectors.max_relative_error
        samples += golden
    return result, samples, notes


def _total_bytes(program: Program) -> int:
    return sum(stored_bytes(spec) for spec in program.weights)


def _encoder(checkpoint, program: Program, calibrated: Calibration, bar):
    """Returns the callable that the writer asks for the bytes of each weight."""
    constants = program.constants

    def read(name: str):
        return constants[name] if name in constants else checkpoint.weights.rows(name)

    def blocks(spec: WeightSpec) -> Iterator:
        for block in encode(spec, read, calibrated, checkpoint.weights.stored_rows):
            yield block
            bar.update(block.nbytes)

    return blocks
