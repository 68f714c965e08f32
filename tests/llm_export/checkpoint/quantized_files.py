"""Writes quantized Hugging Face checkpoints of a tiny model, with what their weights stand for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from compressed_tensors.compressors.pack_quantized import pack_to_int32
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel
from transformers.integrations.bitnet import WeightQuant, pack_weights, unpack_weights

from llm_export.capture import build_model
from llm_export.checkpoint import Checkpoint, open_checkpoint

E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def plain_model(intermediate_size: int = 256) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=96, hidden_size=128, intermediate_size=intermediate_size, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=128, tie_word_embeddings=False,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def pairs(codes: Tensor) -> Tensor:
    """Two codes of E2M1 a byte, the even column in the low nibble."""
    return (codes[:, 0::2] | codes[:, 1::2] << 4).to(torch.uint8)


def along(rows: Tensor, bits: int) -> Tensor:
    """Packs digits [N, M] along dimension 0, the lowest bits first, as AutoGPTQ does: int32 [N * bits / 32, M]."""
    fields = rows.numpy().astype(np.uint32).reshape(-1, 32 // bits, rows.shape[1])
    shifts = np.arange(0, 32, bits, dtype=np.uint32)[None, :, None]
    return torch.from_numpy(np.bitwise_or.reduce(fields << shifts, axis=1).astype(np.uint32).view(np.int32))


def awq_columns(rows: Tensor) -> Tensor:
    """Packs digits [N, M] along dimension 1 in AutoAWQ's order: int32 [N, M / 8]."""
    fields = rows.numpy().astype(np.uint32).reshape(rows.shape[0], -1, 8)[..., list(AWQ_ORDER)]
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    return torch.from_numpy(np.bitwise_or.reduce(fields << shifts, axis=2).astype(np.uint32).view(np.int32))


class Written:
    """A folder with the model's linears quantized, and what these stand for."""

    def __init__(self, folder: Path, config: dict, model: PreTrainedModel | None = None):
        self.folder = folder
        self.config = config
        self.expected: dict[str, Tensor] = {}
        self.generator = torch.Generator().manual_seed(1)
        (model or plain_model()).save_pretrained(folder)
        self.tensors = load_file(folder / "model.safetensors")
        linears = ("_proj.weight", "w1.weight", "w2.weight", "w3.weight")  # the last three of Mixtral's experts
        for name in [name for name in self.tensors if name.endswith(linears)]:
            self.add(name.removesuffix(".weight"), self.tensors.pop(name))
        self.save()

    def save(self) -> None:
        save_file(self.tensors, self.folder / "model.safetensors")
        path = self.folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"quantization_config": self.config}, default=str))

    def digits(self, *shape: int, high: int) -> Tensor:
        return torch.randint(0, high, shape, generator=self.generator)

    def scales(self, *shape: int, dtype=torch.float16) -> Tensor:
        return (0.002 + 0.004 * torch.rand(*shape, generator=self.generator)).to(dtype)

    def order(self, columns: int, group: int) -> Tensor:
        """The group of each column."""
        order = torch.arange(columns) // group
        return order[torch.randperm(columns, generator=self.generator)] if self.config.get("desc_act") else order

    def add(self, prefix: str, weight: Tensor) -> None:
        method = self.config["quant_method"]
        getattr(self, {"compressed-tensors": self.config.get("format", "").replace("-", "_")}.get(method, method))(
            prefix, *weight.shape
        )

    def gptq(self, prefix: str, rows: int, columns: int) -> None:
        bits, group, = self.config["bits"], self.config["group_size"]
        group = columns if group == -1 else group
        digits = self.digits(columns, rows, high=1 << bits)
        zeros = self.digits(columns // group, rows, high=1 << bits)
        if self.config["sym"]:
            zeros = torch.full_like(zeros, (1 << (bits - 1)) - 1)
        scales = self.scales(columns // group, rows, dtype=self.config.get("scales", torch.float16))
        order = self.order(columns, group)
        self.tensors |= {
            f"{prefix}.qweight": along(digits, bits), f"{prefix}.qzeros": along(zeros.T, bits).T.contiguous(),
            f"{prefix}.scales": scales, f"{prefix}.g_idx": order.int(),
        }  # fmt: skip
        each = (digits - (zeros + 1)[order]) * scales.float()[order]
        self.expected[f"{prefix}.weight"] = each.T

    def awq(self, prefix: str, rows: int, columns: int) -> None:
        group = self.config["group_size"]
        digits = self.digits(columns, rows, high=16)
        zeros = self.digits(columns // group, rows, high=16)
        scales = self.scales(columns // group, rows)
        self.tensors |= {
            f"{prefix}.qweight": awq_columns(digits), f"{prefix}.qzeros": awq_columns(zeros),
            f"{prefix}.scales": scales,
        }  # fmt: skip
        each = (digits - zeros.repeat_interleave(group, 0)) * scales.float().repeat_interleave(group, 0)
        self.expected[f"{prefix}.weight"] = each.T

    def pack_quantized(self, prefix: str, rows: int, columns: int) -> None:
        weights = self.config["config_groups"]["group_0"]["weights"]
        bits, group = weights["num_bits"], weights["group_size"]
        codes = (self.digits(rows, columns, high=1 << bits) - (1 << (bits - 1))).to(torch.int8)
        scales = self.scales(rows, columns // group, dtype=torch.bfloat16)
        zeros = torch.zeros(rows, columns // group, dtype=torch.int8)
        if not weights["symmetric"]:
            zeros = (self.digits(rows, columns // group, high=1 << bits) - (1 << (bits - 1))).to(torch.int8)
            self.tensors[f"{prefix}.weight_zero_point"] = pack_to_int32(zeros, bits, packed_dim=0).contiguous()
        self.tensors |= {
            f"{prefix}.weight_packed": pack_to_int32(codes, bits), f"{prefix}.weight_scale": scales,
            f"{prefix}.weight_shape": torch.tensor([rows, columns]),
        }  # fmt: skip
        order = self.order(columns, group)
        if self.config.get("desc_act"):
            self.tensors[f"{prefix}.weight_g_idx"] = order.int()
        self.expected[f"{prefix}.weight"] = (codes.float() - zeros.float()[:, order]) * scales.float()[:, order]

    def int_quantized(self, prefix: str, rows: int, columns: int) -> None:
        codes = (self.digits(rows, columns, high=256) - 128).to(torch.int8)
        scales = self.scales(rows, 1, dtype=torch.float32)
        self.tensors |= {f"{prefix}.weight": codes, f"{prefix}.weight_scale": scales}
        self.expected[f"{prefix}.weight"] = codes.float() * scales

    def float_quantized(self, prefix: str, rows: int, columns: int) -> None:
        codes = torch.randn(rows, columns, generator=self.generator).to(torch.float8_e4m3fn)
        weights = self.config["config_groups"]["group_0"]["weights"]
        shapes = {"tensor": (1, 1), "channel": (1, columns), "block": weights.get("block_structure")}
        high, wide = shapes[weights["strategy"]]
        if weights["strategy"] == "tensor":
            scales = self.scales(1, dtype=torch.bfloat16)
            blocks = scales.float()
        else:
            scales = self.scales(-(-rows // high), -(-columns // wide), dtype=torch.bfloat16)
            blocks = scales.float().repeat_interleave(high, 0)[:rows].repeat_interleave(wide, 1)[:, :columns]
        self.tensors |= {f"{prefix}.weight": codes, f"{prefix}.weight_scale": scales}
        self.expected[f"{prefix}.weight"] = codes.float() * blocks

    def fp8(self, prefix: str, rows: int, columns: int) -> None:
        codes = torch.randn(rows, columns, generator=self.generator).to(torch.float8_e4m3fn)
        high, wide = self.config["weight_block_size"]
        scales = self.scales(-(-rows // high), -(-columns // wide), dtype=torch.float32)
        self.tensors |= {f"{prefix}.weight": codes, f"{prefix}.weight_scale_inv": scales}
        blocks = scales.repeat_interleave(high, 0)[:rows].repeat_interleave(wide, 1)[:, :columns]
        self.expected[f"{prefix}.weight"] = codes.float() * blocks

    def bitsandbytes(self, prefix: str, rows: int, columns: int) -> None:
        if self.config.get("load_in_8bit"):
            self.int8_rows(prefix, rows, columns)
            return
        name, block, nested = f"{prefix}.weight", 64, 256
        codes, numbers = self.digits(rows * columns, high=16), torch.linspace(-1, 1, 16)
        scales = self.digits(rows * columns // block, high=256)
        table = torch.linspace(-1, 1, 256)
        outer = self.scales(-(-len(scales) // nested), dtype=torch.float32)
        state = {"quant_type": "nf4", "blocksize": block, "shape": [rows, columns], "nested_blocksize": nested,
                 "nested_offset": 0.05, "dtype": "float16", "nested_dtype": "float32"}  # fmt: skip
        self.tensors |= {
            name: (codes[0::2] << 4 | codes[1::2]).to(torch.uint8)[:, None], f"{name}.quant_map": numbers,
            f"{name}.absmax": scales.to(torch.uint8), f"{name}.nested_quant_map": table, f"{name}.nested_absmax": outer,
            f"{name}.quant_state.bitsandbytes__nf4": torch.tensor(list(json.dumps(state).encode()), dtype=torch.uint8),
        }  # fmt: skip
        absmax = table[scales] * outer.repeat_interleave(nested)[: len(scales)] + state["nested_offset"]
        self.expected[name] = (numbers[codes] * absmax.repeat_interleave(block)).view(rows, columns)


    def float4(self, prefix: str, rows: int, columns: int) -> tuple[Tensor, Tensor, Tensor]:
        """Codes of E2M1, scales of groups of 16, and the products of both."""
        codes = self.digits(rows, columns, high=16)
        scales = (torch.rand(rows, columns // 16, generator=self.generator) * 400).to(torch.float8_e4m3fn)
        return codes, scales, E2M1[codes] * scales.float().repeat_interleave(16, 1)

    def nvfp4_pack_quantized(self, prefix: str, rows: int, columns: int) -> None:
        codes, scales, values = self.float4(prefix, rows, columns)
        of_all = torch.tensor([self.config.get("of_all", 2.0**14)])
        self.tensors |= {
            f"{prefix}.weight_packed": pairs(codes), f"{prefix}.weight_scale": scales,
            f"{prefix}.weight_global_scale": of_all, f"{prefix}.input_global_scale": of_all.clone(),
        }  # fmt: skip
        self.expected[f"{prefix}.weight"] = values / of_all

    def mxfp4_pack_quantized(self, prefix: str, rows: int, columns: int) -> None:
        codes, exponents = self.digits(rows, columns, high=16), self.digits(rows, columns // 32, high=9) + 114
        self.tensors |= {f"{prefix}.weight_packed": pairs(codes), f"{prefix}.weight_scale": exponents.to(torch.uint8)}
        self.expected[f"{prefix}.weight"] = E2M1[codes] * (2.0 ** (exponents - 127.0)).repeat_interleave(32, 1)

    def modelopt(self, prefix: str, rows: int, columns: int) -> None:
        self.tensors[f"{prefix}.input_scale"] = torch.tensor(0.5)
        if self.config["quant_algo"] == "FP8":
            codes, scale = torch.randn(rows, columns, generator=self.generator), self.scales(1, dtype=torch.float32)[0]
            codes = codes.to(torch.float8_e4m3fn)
            self.tensors |= {f"{prefix}.weight": codes, f"{prefix}.weight_scale": scale}
            self.expected[f"{prefix}.weight"] = codes.float() * scale
            return
        codes, scales, values = self.float4(prefix, rows, columns)
        of_all = torch.tensor(self.config.get("of_all", 2.0**-14))
        self.tensors |= {
            f"{prefix}.weight": pairs(codes), f"{prefix}.weight_scale": scales, f"{prefix}.weight_scale_2": of_all,
        }  # fmt: skip
        self.expected[f"{prefix}.weight"] = values * of_all

    def bitnet(self, prefix: str, rows: int, columns: int) -> None:
        codes, scale = self.digits(rows, columns, high=3) - 1, self.scales(1, dtype=torch.bfloat16)
        name = f"{prefix}.weight"
        if self.config.get("quantization_mode") == "online":
            self.tensors[name] = torch.randn(rows, columns, generator=self.generator).bfloat16()
            with torch.compiler.set_stance("force_eager"):
                self.expected[name] = WeightQuant.forward(None, self.tensors[name]).float()
            return
        if self.config.get("linear_class", "bitlinear") == "bitlinear":
            scale = (1 / scale).bfloat16()
        packed = pack_weights(codes.clone())
        self.tensors |= {name: packed, f"{prefix}.weight_scale": scale}
        with torch.compiler.set_stance("force_eager"):
            codes = unpack_weights(packed, torch.float32)
        is_divided = self.config.get("linear_class", "bitlinear") == "bitlinear"
        self.expected[name] = codes / scale.float() if is_divided else codes * scale.float()

    def int8_rows(self, prefix: str, rows: int, columns: int) -> None:
        codes = (self.digits(rows, columns, high=255) - 127).to(torch.int8)
        largest = self.scales(rows, dtype=torch.float32) * 127
        layout = torch.zeros((), dtype=torch.uint8)
        self.tensors |= {f"{prefix}.weight": codes, f"{prefix}.SCB": largest, f"{prefix}.weight_format": layout}
        self.expected[f"{prefix}.weight"] = codes.float() * (largest / 127)[:, None]


def opened(folder: Path) -> Checkpoint:
    checkpoint = open_checkpoint(folder)
    checkpoint.weights.bind(build_model(checkpoint.config))
    return checkpoint
