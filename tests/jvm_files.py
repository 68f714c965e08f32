"""Files that the tests of Java and Kotlin read, with what Python's runner makes of them.

python -m tests.jvm_files DEMO.mote FOLDER: embedder.mote, vector.json, tone.mote-adapter, adapted.json, long.mote
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from llm_export.adapters import make_adapter
from llm_export.api import export
from llm_runner import Model
from tests import embedders
from tests.adapters import save_lora
from tests.demo import CHECKPOINT

TEXT = "Text \N{GRINNING FACE} and more"


def write_embedder(folder: Path, work: Path) -> None:
    embedder = embedders.qwen3_like(work / "embedder")
    export(embedder.folder, folder / "embedder.mote", recipe="8da4w")
    vector = Model.load(folder / "embedder.mote").embed(TEXT, prompt_name="query")
    (folder / "vector.json").write_text(json.dumps({"text": TEXT, "vector": vector.tolist()}))


def write_adapter(demo: Path, folder: Path, work: Path) -> None:
    lora = save_lora(CHECKPOINT, work / "tone", targets=("q_proj", "v_proj"))
    make_adapter(lora, demo, folder / "tone.mote-adapter")
    model = Model.load(demo)
    session = model.session()
    session.set_adapters([(str(folder / "tone.mote-adapter"), 0.5)])
    logits = session.prefill(model.tokenize(TEXT))
    (folder / "adapted.json").write_text(json.dumps({"text": TEXT, "logits": logits.tolist()}))


def write_long_context(folder: Path, work: Path) -> None:
    """A model with a context that no machine has the memory for."""
    checkpoint = shutil.copytree(CHECKPOINT, work / "long")
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 2**31 - 1}))
    export(checkpoint, folder / "long.mote", recipe="8da4w", check="off")


def main() -> None:
    demo, folder = Path(sys.argv[1]), Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as work:
        write_embedder(folder, Path(work))
        write_adapter(demo, folder, Path(work))
        write_long_context(folder, Path(work))


if __name__ == "__main__":
    main()
