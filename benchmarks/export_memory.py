"""Time and memory of `mote export` at the shapes of real models, on random weights.

    python benchmarks/export_memory.py --scratch FOLDER [--shape llama-3.2-1b] [--json]

Prints wall time, the peak of private (anonymous) memory, the peak resident set (mapped checkpoint pages included)
and file sizes.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

from shapes import SHAPES, WHOLE, write_checkpoint

SAMPLE_SECONDS = 0.02


def memory_of(process_id: int) -> tuple[int, int]:
    """Returns anonymous bytes now, and the peak resident bytes so far."""
    try:
        lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    fields = {line.split(":")[0]: line.split() for line in lines}
    return tuple(int(fields[name][1]) * 1024 if name in fields else 0 for name in ("RssAnon", "VmHWM"))


def cpu_seconds() -> float:
    """Returns the processor time of finished child processes: what a busy machine does not stretch."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(folder: Path, output: Path, arguments: list[str]) -> dict:
    """Runs one export in a process of its own."""
    command = [sys.executable, "-m", "mote.cli", "export", str(folder), "-o", str(output), *arguments]
    started, cpu_before = time.perf_counter(), cpu_seconds()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    private = resident = 0
    while process.poll() is None:
        anonymous, high_water = memory_of(process.pid)
        private, resident = max(private, anonymous), max(resident, high_water)
        time.sleep(SAMPLE_SECONDS)
    text = process.stdout.read()
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit status {process.returncode}\n{text}")
    return {
        "seconds": round(time.perf_counter() - started, 1),
        "cpu_seconds": round(cpu_seconds() - cpu_before, 1),
        "peak_private_bytes": private,
        "peak_resident_bytes": resident,
        "checkpoint_bytes": (folder / "model.safetensors").stat().st_size,
        "file_bytes": output.stat().st_size,
        "output": text.strip(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scratch", type=Path, required=True, help="folder for checkpoints and files (about 4 GB)")
    parser.add_argument("--shape", choices=SHAPES, action="append", help="default: the whole ones")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--keep", action="store_true", help="leave the checkpoints for the next run")
    parser.add_argument("arguments", nargs="*", help="passed on to mote export, behind --")
    options = parser.parse_args()
    rows = {}
    for shape in options.shape or WHOLE:
        folder, output = options.scratch / shape, options.scratch / f"{shape}.mote"
        if not (folder / "config.json").exists():
            write_checkpoint(folder, SHAPES[shape])
        rows[shape] = measure(folder, output, options.arguments)
        output.unlink()
        if not options.keep:
            shutil.rmtree(folder)
    print(json.dumps(rows, indent=2) if options.json else table(rows))


def table(rows: dict[str, dict]) -> str:
    lines = [f"{'shape':14} {'seconds':>8} {'CPU s':>7} {'private':>9} {'resident':>9} {'checkpoint':>11} {'file':>9}"]
    for shape, row in rows.items():
        sizes = (row[f"{key}_bytes"] / 1e9 for key in ("peak_private", "peak_resident", "checkpoint", "file"))
        private, resident, checkpoint, file = (f"{size:.2f} GB" for size in sizes)
        times = f"{row['seconds']:8.1f} {row['cpu_seconds']:7.1f}"
        lines.append(f"{shape:14} {times} {private:>9} {resident:>9} {checkpoint:>11} {file:>9}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
