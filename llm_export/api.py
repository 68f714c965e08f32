"""`export`: the whole way from a Hugging Face checkpoint to a `.mote` file."""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from llm_export.quiet import quiet_imports

with quiet_imports():
    from llm_export.capture import capture
from llm_export.capture.methods import Methods
from llm_export.check import CheckResult, check_targets, choose_mode
from llm_export.check.golden import blank_samples, golden_samples, make_prompts, store_samples
from llm_export.check.oracle import Oracle
from llm_export.checkpoint import TOKENIZER_FILES, Checkpoint, open_checkpoint
from llm_export.checkpoint.metadata import make_metadata
from llm_export.checkpoint.tokenizer import check_compiled_tokenizer
from llm_export.errors import FileError
from llm_export.instructions import lower
from llm_export.partition import Partitioned, Refusal, partition
from llm_export.partition.backend import Backend
from llm_export.partition.targets import parse_targets
from llm_export.passes import run_passes
from llm_export.plan import plan
from llm_export.program.formats import stored_bytes
from llm_export.program.instructions import CPU, MemoryPlan
from llm_export.program.specs import WeightSpec
from llm_export.program.writer import write_program
from llm_export.progress import PrivateMemory, Progress
from llm_export.quantize import Override, QuantizationWarning, Recipe, quantize
from llm_export.quantize.encode import encode
from llm_export.quantize.recipes import describe

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
    notes: list[str] = field(default_factory=list)  # what the recipe could not do, what could not be checked
    refusals: list[Refusal] = field(default_factory=list)  # what backends do not run, and why
    num_delegated: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)  # as in Partitioned


def export(
    source: str | Path,
    output: str | Path | None = None,
    *,
    recipe: str = "8da4w",
    group_size: int | str = 32,
    embedding_bits: int = 8,
    overrides: Sequence[str] = (),
    backends: str | Sequence[str | Backend] = CPU,
    check: str | None = None,
    tokenizer: bool = True,
    revision: str | None = None,
    show_progress: bool | None = None,
    **checkpoint_options,
) -> ExportReport:
    """Exports a checkpoint to one `.mote` file.

    source: folder or hub id   output: None: `<model>.mote` here
    recipe, group_size, embedding_bits, overrides: docs/quantization.md; an override is `PATTERN=SCHEME[:GROUP_SIZE]`
    backends: ways to run the file, the best first: "xnnpack,cpu" or [XnnpackBackend(...), "cpu"]; the CPU runs what a
        backend does not
    check: "full", "layers" or "off"; None: the fullest that fits the memory   show_progress: None: on a terminal
    tokenizer: False leaves tokenizer and chat template out; such a file takes token ids only
    checkpoint_options: subfolder, token, cache_dir, local_files_only, trust_remote_code, as in `from_pretrained`
    Errors: MoteError; whatever happens, `output` is either whole or as it was before
    """
    started = time.perf_counter()
    chosen = Recipe(recipe, group_size, embedding_bits)
    parsed = [Override.parse(text) for text in overrides]
    targets = parse_targets(backends)
    choose_mode(check or "off", {})
    path = Path(output) if output is not None else Path(default_name(source))
    progress = Progress(show_progress)
    with PrivateMemory() as memory, _temporary(path) as temporary, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", QuantizationWarning)
        with progress.stage("open"):
            checkpoint = open_checkpoint(source, revision=revision, **checkpoint_options)
            if not tokenizer:
                checkpoint = replace(checkpoint, tokenizer_path=None, chat_template="")
            _check_tokenizer(checkpoint)
        with progress.stage("capture"):
            captured = capture(checkpoint)
        written = _write_checked(checkpoint, captured, temporary, chosen, parsed, targets, check, progress)
        _commit(temporary, path)
    return ExportReport(
        path=path,
        file_bytes=path.stat().st_size,
        seconds=time.perf_counter() - started,
        stage_seconds=progress.seconds,
        peak_private_bytes=memory.peak_bytes,
        check=written.check,
        notes=[*(str(entry.message) for entry in caught if entry.category is QuantizationWarning), *written.notes],
        refusals=written.partitioned.refusals,
        num_delegated=written.partitioned.num_delegated,
    )


def default_name(source: str | Path) -> str:
    """Returns `<model>.mote` for a hub id or a folder."""
    folder = Path(source)
    return f"{folder.resolve().name if folder.is_dir() else str(source).rpartition('/')[2]}.mote"


def _check_tokenizer(checkpoint: Checkpoint) -> None:
    """Errors: FileError if the runner has no such tokenizer, or its compiled form differs from the original."""
    hint = "export with --no-tokenizer for a file that takes token ids only"
    if checkpoint.tokenizer_path is None:
        other = next((name for name in OTHER_TOKENIZERS if (checkpoint.folder / name).is_file()), None)
        if other is not None:
            raise FileError(
                f"{checkpoint.folder / other}: only {', '.join(TOKENIZER_FILES)} are read; make a tokenizer.json with "
                f"AutoTokenizer.from_pretrained(...).save_pretrained(...), or {hint}"
            )
        return
    try:
        check_compiled_tokenizer(checkpoint.tokenizer_path)
    except FileError as error:
        raise FileError(f"{error}; {hint}") from error


@dataclass(frozen=True)
class _Written:
    partitioned: Partitioned
    check: CheckResult | None
    notes: list[str]


def _write_checked(
    checkpoint, captured: Methods, temporary: Path, recipe, overrides, targets, check, progress
) -> _Written:
    """Takes captured methods to a checked file."""
    vocab_size = _vocab_size(captured)
    with progress.stage("quantize"):
        quantized = quantize(captured, recipe, overrides)
    with progress.stage("passes"):
        optimized = run_passes(quantized)
    with progress.stage("lower"):
        lowered = lower(optimized, checkpoint.config.model_type)
    with progress.stage("partition"):
        partitioned = partition(lowered, targets)
        memory_plan = plan(partitioned.program)
    mode = choose_mode(check, quantized.weights)
    metadata = make_metadata(checkpoint, vocab_size, describe(recipe, overrides))
    max_length = min(metadata.max_position_embeddings, captured.max_tokens)
    prompts = make_prompts(checkpoint, vocab_size, max_length) if mode != "off" else []
    with progress.stage("write", _total_bytes(memory_plan), "B") as bar:
        blank = replace(metadata, golden_samples=blank_samples(prompts))
        write_program(temporary, memory_plan, blank, _encoder(checkpoint, memory_plan, bar))
    if mode == "off":
        return _Written(partitioned, None, [])
    with progress.stage("check"):
        oracle = Oracle(checkpoint, quantized.weights, keep=mode == "full")
        names = [target.name for target in targets]
        result, notes = check_targets(temporary, names, oracle, prompts, mode, max_length)
        store_samples(temporary, memory_plan, replace(metadata, golden_samples=golden_samples(result)))
    return _Written(partitioned, result, notes)


def _vocab_size(methods: Methods) -> int:
    output = next(node for node in methods.programs["verify"].graph.nodes if node.op == "output")
    return int(output.args[0][0].meta["val"].shape[-1])


def _total_bytes(memory_plan: MemoryPlan) -> int:
    return sum(stored_bytes(spec) for spec in memory_plan.program.weights)


def _encoder(checkpoint, memory_plan: MemoryPlan, bar):
    """Returns the callable that the writer asks for the bytes of each weight."""
    constants = memory_plan.program.constants

    def read(name: str):
        return constants[name] if name in constants else checkpoint.weights.read(name)

    def blocks(spec: WeightSpec) -> Iterator:
        for block in encode(spec, read):
            yield block
            bar.update(block.nbytes)

    return blocks


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """Yields a new file beside `path`, which is gone afterwards unless it was renamed.

    What a backend kept beside it while it was checked, under a name that begins with the file's, goes too.
    """
    temporary = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    if path.is_dir():
        raise FileError(f"{path}: is a folder: must be the name of the file to write")
    try:
        temporary.touch(exist_ok=True)
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror}") from error
    try:
        yield temporary
    except OSError as error:
        if error.filename not in (None, str(temporary)):
            raise
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        for file in path.parent.iterdir():
            if file.name.startswith(temporary.name):
                file.unlink(missing_ok=True)


def _commit(temporary: Path, path: Path) -> None:
    """Makes the temporary file the finished one, on disk before it has the name."""
    with open(temporary, "rb+") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
