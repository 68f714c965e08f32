"""llama.cpp's attention over one layer: ggml_flash_attn_ext of the libraries in llama-cpp-python, on the CPU."""

from __future__ import annotations

import ctypes
from pathlib import Path

import llama_cpp
import numpy as np

from benchmarks.kernels import cases

# enum ggml_type: number, bytes an element
TYPES = {"float32": (0, 4.0), "float16": (1, 2.0), "int4": (2, 18 / 32), "int8": (8, 34 / 32)}
FLOAT32, FLOAT16 = 0, 1
SPARE_BYTES = 256 << 20  # the mask, the graph, and the work memory of every run

FOLDER = Path(llama_cpp.__file__).parent / "lib"
BASE = ctypes.CDLL(str(FOLDER / "libggml-base.so"))
CPU = ctypes.CDLL(str(FOLDER / "libggml-cpu.so"))


class InitParams(ctypes.Structure):
    _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool)]


def declare(library: ctypes.CDLL, name: str, result, *arguments):
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function


POINTER, FLOAT, INT, INT64, SIZE = ctypes.c_void_p, ctypes.c_float, ctypes.c_int, ctypes.c_int64, ctypes.c_size_t
init = declare(BASE, "ggml_init", POINTER, InitParams)
free = declare(BASE, "ggml_free", None, POINTER)
new_tensor = declare(BASE, "ggml_new_tensor_4d", POINTER, POINTER, INT, *[INT64] * 4)
get_data = declare(BASE, "ggml_get_data", POINTER, POINTER)
quantize_chunk = declare(BASE, "ggml_quantize_chunk", SIZE, INT, POINTER, POINTER, *[INT64] * 3, POINTER)
flash_attn_ext = declare(BASE, "ggml_flash_attn_ext", POINTER, *[POINTER] * 5, *[FLOAT] * 3)
new_graph = declare(BASE, "ggml_new_graph_custom", POINTER, POINTER, SIZE, ctypes.c_bool)
build_forward_expand = declare(BASE, "ggml_build_forward_expand", None, POINTER, POINTER)
compute = declare(CPU, "ggml_graph_compute_with_ctx", INT, POINTER, POINTER, INT)
cpu_init = declare(CPU, "ggml_cpu_init", None)


def filled(context: int, kind: int, values: np.ndarray) -> int:
    """Returns a tensor of the values, float32 [1, heads, rows, head_dim]."""
    tensor = new_tensor(context, kind, *reversed(values.shape))
    if kind in (FLOAT32, FLOAT16):
        values = values.astype(np.float32 if kind == FLOAT32 else np.float16)
        ctypes.memmove(get_data(tensor), values.ctypes.data, values.nbytes)
    else:
        rows = values.size // values.shape[-1]
        quantize_chunk(kind, values.ctypes.data, get_data(tensor), 0, rows, values.shape[-1], None)
    return tensor


def causal_mask(case: cases.Case) -> np.ndarray:
    last_seen = np.arange(case.tokens)[:, None] + case.context - case.tokens
    return np.where(np.arange(case.context)[None, :] <= last_seen, 0.0, -np.inf).astype(np.float32)[None, None]


def time_case(case: cases.Case) -> float:
    kind, element_bytes = TYPES[case.type]
    layers = case.layers(element_bytes)
    result_bytes = 4 * case.heads * case.tokens * case.head_dim
    cache_bytes = int(2 * case.context * case.kv_heads * case.head_dim * element_bytes)
    context = init(InitParams(layers * (cache_bytes + result_bytes + 4096) + SPARE_BYTES, None, False))
    draw = np.random.default_rng(0)
    q = filled(context, FLOAT32, draw.standard_normal((1, case.heads, case.tokens, case.head_dim), np.float32))
    values = draw.standard_normal((1, case.kv_heads, case.context, case.head_dim), np.float32)
    mask = filled(context, FLOAT16, causal_mask(case)) if case.tokens > 1 else None
    # All layers are one graph, as in a model, so that starting its threads is shared.
    graph = new_graph(context, 4 * layers + 64, False)
    for _ in range(layers):
        k, v = filled(context, kind, values), filled(context, kind, values)
        build_forward_expand(graph, flash_attn_ext(context, q, k, v, mask, case.head_dim**-0.5, 0.0, 0.0))
    try:
        return cases.seconds_a_run(lambda: compute(context, graph, case.threads)) / layers
    finally:
        free(context)


if __name__ == "__main__":
    cpu_init()
    cases.main(time_case)
