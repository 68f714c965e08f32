"""OpenVINO GenAI, converted by optimum-intel and compressed by nncf."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from benchmarks.peers import Peer, tiles, worker

PEER = Peer(
    name="openvino-genai",
    module=__name__,
    requirements=("openvino-genai==2026.4.1.0", "torch==2.13.0", "optimum-intel==2.2.0", "nncf==3.4.0"),
    without=("torchvision",),
    distribution="openvino-genai",
    conversion="optimum-intel, int4 symmetric, embedding and head included; activations as OpenVINO chooses",
    head="4 bits, groups of 32",
    cache="OpenVINO's default",
)
FLAGS = ("--task", "text-generation-with-past", "--weight-format", "int4", "--sym", "--group-size", "32")
FLAGS += ("--ratio", "1.0", "--all-layers", "--disable-convert-tokenizer")


def convert(checkpoint: Path, folder: Path) -> None:
    program = Path(sys.executable).with_name("optimum-cli")
    worker.call([str(program), "export", "openvino", "--model", str(checkpoint), *FLAGS, str(folder)])


class OpenVino:
    def __init__(self, folder: Path, threads: int):
        import openvino
        import openvino_genai

        self._tensor, self._api = openvino.Tensor, openvino_genai
        properties = {"INFERENCE_NUM_THREADS": threads}
        if tiles.refused():
            # Its default where the processor knows bfloat16, but without tiles integer products are faster.
            properties["INFERENCE_PRECISION_HINT"] = "f32"
        self._pipeline = openvino_genai.LLMPipeline(str(folder), "CPU", **properties)

    def generate(self, prompt: list[int], count: int) -> tuple[list[int], list[float]]:
        import numpy as np

        streamer = _clock(self._api)
        config = self._api.GenerationConfig(max_new_tokens=count, ignore_eos=True, do_sample=False)
        self._pipeline.generate(self._tensor(np.array([prompt], np.int64)), config, streamer)
        return streamer.ids, streamer.times


def _clock(api):
    """Returns a streamer that notes when each token came."""

    class Clock(api.StreamerBase):
        def __init__(self):
            super().__init__()
            self.ids, self.times = [], []

        def write(self, tokens):
            now = time.perf_counter()
            for token in [tokens] if isinstance(tokens, int) else tokens:
                self.ids.append(token)
                self.times.append(now)
            return api.StreamingStatus.RUNNING

        def end(self):
            pass

    return Clock()


def load(folder: Path, threads: int, context_length: int) -> OpenVino:
    return OpenVino(folder, threads)


if __name__ == "__main__":
    worker.main(convert, load)
