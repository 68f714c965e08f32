"""ONNX Runtime GenAI, converted by its own model builder."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from benchmarks.peers import Peer, worker

PEER = Peer(
    name="onnxruntime-genai",
    module=__name__,
    requirements=("onnxruntime-genai==0.18.0", "torch==2.13.0", "transformers>=5", "onnx", "onnx-ir", "onnxruntime"),
    distribution="onnxruntime-genai",
    conversion="model builder, int4 symmetric, float32 scales, int8 activations (accuracy level 4), pruned head",
    head="4 bits, blocks of 32",
    cache="float32",
)
OPTIONS = {
    "block_size": 32,
    "accuracy_level": 4,
    "is_symmetric": "true",
    "algo_config": "rtn",
    "prune_lm_head": "true",
}


def convert(checkpoint: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(checkpoint), "-o", str(folder)]
    command += ["-p", "int4", "-e", "cpu", "-c", str(folder / "cache"), "--extra_options"]
    worker.call(command + [f"{name}={value}" for name, value in OPTIONS.items()])


class OnnxRuntime:
    def __init__(self, folder: Path, threads: int, context_length: int):
        import onnxruntime_genai

        self._api = onnxruntime_genai
        config = onnxruntime_genai.Config(str(folder))
        config.overlay(json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}}}))
        self._model = onnxruntime_genai.Model(config)
        self._parameters = onnxruntime_genai.GeneratorParams(self._model)
        self._context_length = context_length

    def generate(self, prompt: list[int], count: int) -> tuple[list[int], list[float]]:
        length = self._context_length
        self._parameters.set_search_options(do_sample=False, max_length=length, min_length=length)
        generator = self._api.Generator(self._model, self._parameters)
        generator.append_tokens(prompt)
        ids, times = [], []
        for _ in range(count):
            generator.generate_next_token()
            ids.append(int(generator.get_next_tokens()[0]))
            times.append(time.perf_counter())
        return ids, times


def load(folder: Path, threads: int, context_length: int) -> OnnxRuntime:
    return OnnxRuntime(folder, threads, context_length)


if __name__ == "__main__":
    worker.main(convert, load)
