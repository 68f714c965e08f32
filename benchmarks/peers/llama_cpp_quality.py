"""What llama.cpp's own quantizer costs a Llama checkpoint: python -m ... CHECKPOINT WORK IDS LOGITS IMPORTANCE TYPE...

Writes the checkpoint as a float32 GGUF file, has llama.cpp quantise it to each type, with the importance matrices of
IMPORTANCE for "TYPE --imatrix", and compares the logits of each, window by window, with those of the checkpoint.
Prints a JSON object a type, and first that of float32, whose divergence shows what the harness itself adds. IDS and
LOGITS are .npy files, IMPORTANCE a .npz. Needs llama_cpp, gguf and numpy only.
"""

from __future__ import annotations

import ctypes
import json
import math
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.peers import llama_cpp as peer
from benchmarks.peers import tiles
from benchmarks.peers.checkpoint import Checkpoint

CONTEXT = 512
# enum llama_ftype
FILE_TYPES = {"Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q4_K_S": 14, "Q4_K_M": 15, "Q5_K_M": 17}


def write_float(folder: Path, path: Path) -> None:
    """Writes the checkpoint's weights as they are, float32, without a vocabulary."""
    import gguf

    source = Checkpoint(folder)
    config = source.config
    theta = (config.get("rope_parameters") or {}).get("rope_theta", 10000.0)
    config.setdefault("rope_theta", theta)
    config.setdefault("head_dim", config["hidden_size"] // config["num_attention_heads"])
    writer = gguf.GGUFWriter(path, config["model_type"], use_temp_file=True)
    peer._add_metadata(writer, config)
    for name in source.names():
        writer.add_tensor(peer._gguf_name(name), np.asarray(source.paired(name), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def importance_matrix(api, path: Path) -> ctypes.Array:
    """Returns the matrices of a file as llama.cpp's quantizer takes them: ended by one without a name."""
    rows = []
    with np.load(path) as means:
        for name in means.files:
            values = means[name].tolist()
            data = (ctypes.c_float * len(values))(*values)
            rows.append(api.llama_model_imatrix_data(peer._gguf_name(name).encode(), data, len(values)))
    return (api.llama_model_imatrix_data * (len(rows) + 1))(*rows)


def quantise(api, source: Path, path: Path, kind: str, importance: Path) -> float:
    """Has llama.cpp's quantizer write a file. Returns: seconds"""
    kind, _, with_importance = kind.partition(" ")
    parameters = api.llama_model_quantize_default_params()
    parameters.ftype = FILE_TYPES[kind]
    if with_importance:
        parameters.imatrix = importance_matrix(api, importance)
    started = time.perf_counter()
    if status := api.llama_model_quantize(str(source).encode(), str(path).encode(), parameters):
        raise RuntimeError(f"llama_model_quantize returned {status} for {kind}")
    return time.perf_counter() - started


def bits(path: Path) -> float:
    """Returns the bits that a weight of the matrices of a file takes."""
    import gguf

    matrices = [tensor for tensor in gguf.GGUFReader(path).tensors if len(tensor.shape) > 1]
    return 8 * sum(int(t.n_bytes) for t in matrices) / sum(math.prod(map(int, t.shape)) for t in matrices)


def score(api, path: Path, ids: np.ndarray, expected: np.ndarray) -> dict:
    """Compares logits. expected: float32 [len(ids), vocab_size]"""
    model = api.llama_model_load_from_file(str(path).encode(), api.llama_model_default_params())
    settings = api.llama_context_default_params()
    settings.n_ctx = settings.n_batch = settings.n_ubatch = CONTEXT
    context = api.llama_init_from_model(model, settings)
    nll = divergence = agreed = 0.0
    for start in range(0, len(ids), CONTEXT):
        window = ids[start : start + CONTEXT]
        found = _log_softmax(_logits(api, context, window, expected.shape[1]))
        wanted = _log_softmax(expected[start : start + CONTEXT].astype(np.float64))
        divergence += float((np.exp(wanted[:-1]) * (wanted[:-1] - found[:-1])).sum())
        agreed += int((found[:-1].argmax(1) == wanted[:-1].argmax(1)).sum())
        nll -= float(found[np.arange(len(window) - 1), window[1:]].sum())
    api.llama_free(context)
    api.llama_model_free(model)
    count = len(ids) - -(-len(ids) // CONTEXT)  # the last position of a window predicts nothing
    return {"perplexity": math.exp(nll / count), "kl_divergence": divergence / count, "top1_agreement": agreed / count}


def _logits(api, context, window: np.ndarray, vocab_size: int) -> np.ndarray:
    api.llama_memory_clear(api.llama_get_memory(context), True)
    batch = api.llama_batch_init(len(window), 0, 1)
    batch.n_tokens = len(window)
    for index, token in enumerate(window):
        batch.token[index], batch.pos[index], batch.n_seq_id[index] = int(token), index, 1
        batch.seq_id[index][0], batch.logits[index] = 0, 1
    status = api.llama_decode(context, batch)
    api.llama_batch_free(batch)
    if status:
        raise RuntimeError(f"llama_decode returned {status}")
    rows = [api.llama_get_logits_ith(context, index) for index in range(len(window))]
    return np.stack([np.ctypeslib.as_array(row, (vocab_size,)).copy() for row in rows]).astype(np.float64)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


def main(checkpoint: str, work: str, ids: str, logits: str, importance: str, *kinds: str) -> None:
    import llama_cpp

    tiles.refuse()  # compiled by gcc 12, its AMX kernels end in an illegal instruction
    llama_cpp.llama_backend_init()
    tokens, expected = np.load(ids), np.load(logits, mmap_mode="r")
    source = Path(work) / "f32.gguf"
    if not source.is_file():
        write_float(Path(checkpoint), source)
    for kind in ("F32", *kinds):
        path = source if kind == "F32" else source.with_name(f"{kind.replace(' --', '-')}.gguf")
        seconds = 0.0 if kind == "F32" else quantise(llama_cpp, source, path, kind, Path(importance))
        row = {"recipe": kind, "bits": bits(path), "file_bytes": path.stat().st_size, "seconds": seconds}
        print(json.dumps(row | score(llama_cpp, path, tokens, expected)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
