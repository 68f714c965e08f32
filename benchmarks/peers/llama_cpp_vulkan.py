"""llama.cpp with all layers on a GPU, by its Vulkan backend, compiled with the package's own sources.

Compiling takes Vulkan's headers, those of SPIR-V, and glslc (Debian and Ubuntu: libvulkan-dev spirv-headers glslc).
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.peers import llama_cpp, worker

DEVICES = "GGML_VK_VISIBLE_DEVICES"
HEADER = Path(__file__).with_name("vulkan_layer_settings.h")
PEER = replace(
    llama_cpp.PEER,
    name="llama.cpp-vulkan",
    module=__name__,
    backend="vulkan",
    conversion="Q4_0, embedding and head included; Vulkan, all layers",
    avx2=None,
    settings={"CMAKE_ARGS": f"-DGGML_VULKAN=ON '-DCMAKE_CXX_FLAGS=-include{HEADER}'"},
)


def show_cpu_devices() -> None:
    """Where there is no GPU, has llama.cpp take the first device that the CPU imitates, which it hides otherwise."""
    if DEVICES not in os.environ:
        code = "import llama_cpp; print(llama_cpp.llama_supports_gpu_offload())"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        if found.stdout.split()[-1] != "True":
            os.environ[DEVICES] = "0"


def load(folder: Path, threads: int, context_length: int) -> llama_cpp.LlamaCpp:
    return llama_cpp.LlamaCpp(folder / llama_cpp.FILE, threads, context_length, on_gpu=True)


if __name__ == "__main__":
    show_cpu_devices()
    worker.main(llama_cpp.convert, load)
