"""Opens tensors of a Hugging Face checkpoint that is quantized already."""

from __future__ import annotations

from llm_export.checkpoint.quantized.bitnet import read_bitnet
from llm_export.checkpoint.quantized.bitsandbytes import read_bitsandbytes
from llm_export.checkpoint.quantized.compressed import read_compressed
from llm_export.checkpoint.quantized.float8 import read_float8
from llm_export.checkpoint.quantized.gptq import read_gptq
from llm_export.checkpoint.quantized.hqq import read_hqq
from llm_export.checkpoint.quantized.mxfp4 import read_mxfp4
from llm_export.checkpoint.quantized.nvfp4 import read_modelopt
from llm_export.checkpoint.quantized.packed import QuantizedFiles
from llm_export.checkpoint.quantized.torchao import read_torchao
from llm_export.checkpoint.weights import SafetensorsFiles
from llm_export.errors import UnsupportedError

READERS = {
    "gptq": read_gptq,
    "awq": read_gptq,
    "compressed-tensors": read_compressed,
    "mxfp4": read_mxfp4,
    "fp8": read_float8,
    "bitsandbytes": read_bitsandbytes,
    "bitnet": read_bitnet,
    "torchao": read_torchao,
    "hqq": read_hqq,
    "modelopt": read_modelopt,
}


def quantized_files(files: SafetensorsFiles, config: dict, model_type: str) -> QuantizedFiles:
    """config: quantization_config. Errors: FileError naming tensor or field; UnsupportedError naming the method"""
    method = config.get("quant_method")
    if not isinstance(method, str) or method not in READERS:
        raise UnsupportedError(
            model_type, f"its weights are already quantized ({method or 'unknown'})",
            f"Quantized checkpoints that are read: {', '.join(READERS)}, and GGUF. Export the unquantized checkpoint",
        )  # fmt: skip
    return QuantizedFiles(files, *READERS[method](files, config, model_type))
