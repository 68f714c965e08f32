"""Adapters as docs/adapters.md has them: made by `mote adapter`, then used by the commands and by sessions."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from peft import PeftModel

from llm_export.adapters import make_adapter
from llm_runner import Model
from tests.adapters import eager_model, save_lora
from tests.demo import CHECKPOINT

PROMPT = "def read_lines(path):\n"
GREEDY = ("--greedy", "--max-new-tokens", "16")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapters")
    names = ("style", "tone")
    return [save_lora(CHECKPOINT, folder / name, targets=("q_proj", "v_proj"), seed=i) for i, name in enumerate(names)]


@pytest.fixture(scope="module")
def adapters(folders, demo_path):
    for folder in folders:
        command = [sys.executable, "-m", "mote", "adapter", str(folder), "--base", str(demo_path)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder.parent, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
    return [folder.with_suffix(".mote-adapter") for folder in folders]


def peft_text(folder, ids: list[int], demo) -> str:
    """What PEFT continues with, greedily."""
    model = PeftModel.from_pretrained(eager_model(CHECKPOINT), folder, torch_dtype=torch.float32).eval()
    prompt = torch.tensor([ids])
    options = {"do_sample": False, "max_new_tokens": 16, "attention_mask": torch.ones_like(prompt)}
    return demo.detokenize(model.generate(prompt, **options)[0, len(ids) :].tolist())


def command(runner, *arguments, **options) -> str:
    words = [runner, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip("\n")


def test_run_says_what_peft_says(runner, demo, demo_path, folders, adapters):
    texts = [command(runner, "run", demo_path, "--raw", PROMPT, *GREEDY, "--adapter", adapter) for adapter in adapters]
    expected = [peft_text(folder, demo.tokenize(PROMPT), demo).rstrip("\n") for folder in folders]
    assert texts == expected
    assert len({*texts, command(runner, "run", demo_path, "--raw", PROMPT, *GREEDY)}) == 3


def test_run_and_chat_mix_them_by_weight(runner, demo, demo_path, adapters):
    style, tone = adapters
    words = ("--adapter", f"{style}=0.5", "--adapter", tone)
    mix = [(style, 0.5), (tone, 1.0)]
    own = demo.generate(PROMPT, adapters=mix, do_sample=False, max_new_tokens=16).text()
    assert command(runner, "run", demo_path, "--raw", PROMPT, *GREEDY, *words) == own.rstrip("\n")
    messages = [{"role": "user", "content": "What is a list?"}]
    with demo.session(adapters=mix) as session:
        reply = session.generate(
            demo.apply_chat_template(messages, add_generation_prompt=True), do_sample=False, max_new_tokens=16
        ).text()
    assert command(runner, "chat", demo_path, *GREEDY, *words, input="What is a list?\n") == reply.rstrip("\n")


def test_bench_takes_them(runner, demo_path, adapters):
    words = ("-p", "8", "-n", "4", "-r", "1", "--json")
    assert json.loads(command(runner, "bench", demo_path, *words, "--adapter", adapters[0]))


@pytest.mark.parametrize("recipe", ["none", "8da4w"])
def test_threads_and_chunks_do_not_change_a_bit(recipe, demo_files, folders, tmp_path):
    base = demo_files.path(recipe)
    files = []
    for folder in folders:
        path = tmp_path / f"{folder.name}.mote-adapter"
        make_adapter(folder, base, path)
        files.append(path)
    found = {}
    with Model.load(base) as model:
        ids = model.tokenize(PROMPT * 4)
        for threads in (1, 2, 3):
            for chunk in (1, 7, len(ids)):
                options = {"context_length": 128, "threads": threads, "prefill_chunk": chunk, "adapters": files}
                with model.session(**options) as session:
                    logits = [session.prefill(ids[:-1]), session.decode(ids[-1])]
                    found[threads, chunk] = np.stack(logits).tobytes()
    assert len(set(found.values())) == 1
