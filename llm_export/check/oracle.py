"""What a program must compute: the Hugging Face module in eager float32 PyTorch, quantised as torchao does it.

Parameters come from the mapped checkpoint when the module that owns them runs, and leave afterwards unless `keep` is
set, so a model of any size fits the memory of its largest layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from transformers import AutoModel, AutoModelForCausalLM

from llm_export.capture import architectures, parameters_on_meta
from llm_export.capture.hadamard import inverse_hadamard
from llm_export.capture.ops import round_input
from llm_export.checkpoint import Checkpoint
from llm_export.checkpoint.parts import Part, part_name
from llm_export.program.specs import WeightSpec
from llm_export.quantize.affine import QuantizedWeight, joined, matrix_name, quantize_for
from llm_export.quantize.torchao_quiet import IntxUnpackedToInt8Tensor

META = torch.device("meta")
FULL_BYTES = 1 << 30  # float32 parameters up to this size may all be held in memory
BLOCK_ELEMENTS = 1 << 17  # quantised in one step, so that temporaries stay in the cache
PRODUCTS = {F.linear, torch.matmul, torch.bmm, Tensor.matmul, Tensor.__matmul__, Tensor.bmm}  # of (x, weight)
PARTS = {Tensor.__getitem__, Tensor.view, Tensor.transpose, Tensor.T.__get__}
BLOCKED_ELEMENTS = 1 << 24  # linears larger than this are multiplied in blocks of rows


class Oracle:
    """The eager module of a checkpoint. Not thread-safe.

    weights: formats by state-dict name, as `quantize` decided them; a name that is absent is dense
    keep: hold every parameter in memory between calls
    calibrated: by source name, or matrix_name in stacks, what a weight was quantised to already
    """

    def __init__(
        self, checkpoint: Checkpoint, weights: dict[str, WeightSpec] | None = None, *, keep: bool = False,
        calibrated: Mapping[str, QuantizedWeight] | None = None,
    ):  # fmt: skip
        self.reader = checkpoint.weights
        self.setup = checkpoint.embedding
        self.weights = {source: spec for spec in (weights or {}).values() for source in spec.sources}
        self._parts: dict[str, list[tuple[Part, WeightSpec]]] = {}
        for source, spec in self.weights.items():
            if spec.bits and (part := Part.of(source)) is not None:
                self._parts.setdefault(part.source, []).append((part, spec))
        self.keep = keep
        self.calibrated = calibrated if calibrated is not None else {}
        self.model = build_eager_model(checkpoint)
        self.reader.bind(self.model)
        self._source: dict[int, str] = {}  # id of a meta parameter -> the first of its tied names
        for name, parameter in self.model.named_parameters():
            self._source[id(parameter)] = name
        self._specs = {id(p): self._spec(name) for name, p in self.model.named_parameters()}
        self._noise: list[tuple[int, float]] = []
        self._load_buffers()
        for unit, members in self._units():
            self._install(unit, members)
        self.model.get_input_embeddings().register_forward_hook(self._perturb)

    @torch.no_grad()
    def logits(self, input_ids: Tensor, *, perturbed_rows: int = 0, perturbation: float = 0.0) -> Tensor:
        """Runs whole sequences without a cache.

        input_ids: int64 [B, T]
        perturbed_rows: so many sequences at the end get their embeddings changed by a relative `perturbation`
        Returns: float32 [B, T, vocab_size]
        """
        return self._run(self.model, input_ids, perturbed_rows, perturbation).logits.float()

    @torch.no_grad()
    def embeddings(self, input_ids: Tensor, *, perturbed_rows: int = 0, perturbation: float = 0.0) -> Tensor:
        """As `logits`, but gives the embedding of each sequence, before it is normalised.

        Returns: float32 [B, dimensions]
        """
        hidden = self._run(self.model.base_model, input_ids, perturbed_rows, perturbation)[0].float()
        for layer in self.setup.dense:
            hidden = layer(hidden)
        return pool(hidden, self.setup.pooling)

    def _run(self, module: nn.Module, input_ids: Tensor, perturbed_rows: int, perturbation: float):
        self._noise = [(perturbed_rows, perturbation)] if perturbed_rows else []
        positions = torch.arange(input_ids.shape[1])[None].expand(input_ids.shape[0], -1)
        with _WeightUses(self):
            return module(input_ids, position_ids=positions, use_cache=False)

    def rows(self, table: nn.Parameter, ids: Tensor) -> Tensor | None:
        """Looks up rows of a parameter that is not in memory, reading only those; None for any other tensor."""
        if id(table) not in self._source or table.device.type != "meta":
            return None
        distinct, places = ids.unique(return_inverse=True)
        rows = self.reader.rows(self._source[id(table)])[distinct]
        spec = self._specs[id(table)]
        rows = rows.to(torch.float32) if spec is None else _dequantized(rows, spec)
        return (rows if spec is None or not spec.is_rotated else inverse_hadamard(rows))[places]

    def vocab_size(self) -> int:
        """Returns the number of logits of a position."""
        return self.model.get_output_embeddings().weight.shape[0]

    def _spec(self, name: str) -> WeightSpec | None:
        spec = self.weights.get(name)
        return spec if spec is not None and spec.bits else None

    def _load_buffers(self) -> None:
        """Gives buffers what the checkpoint stores of them, such as the bias of a router's scores; they are small."""
        for name, buffer in self.model.named_buffers():
            if name in self.reader:
                buffer.copy_(self.reader.read(name))

    def _units(self) -> Iterator[tuple[nn.Module, list[nn.Module]]]:
        """Yields modules whose run loads the parameters of some together: each layer all of its own, and each module
        outside the layers those that it owns itself."""
        stack = [self.model]
        while stack:
            module = stack.pop()
            if isinstance(module, nn.ModuleList):
                yield from ((layer, list(layer.modules())) for layer in module)
                continue
            if module._parameters:
                yield module, [module]
            stack.extend(module.children())

    def _install(self, unit: nn.Module, members: list[nn.Module]) -> None:
        if isinstance(unit, nn.Embedding):
            return  # its rows are read as they are looked up
        if type(unit) is nn.Linear and unit.weight.numel() > BLOCKED_ELEMENTS and not self.keep:
            unit.forward = lambda x, unit=unit: self._blocked_linear(unit, x)
            return
        slots = [(m, n, p) for m in members for n, p in m._parameters.items() if p is not None]
        self._quantize_inputs(members)
        unit.register_forward_pre_hook(lambda module, args: self._load(slots))
        if not self.keep:
            unit.register_forward_hook(lambda module, args, output: self._release(slots))

    def _quantize_inputs(self, members: list[nn.Module]) -> None:
        """Adds what is done to the inputs to modules that do not compute their product with torchao's tensor."""
        for module in members:
            weight = module._parameters.get("weight")
            spec = self._specs.get(id(weight)) if weight is not None else None
            if spec is not None and _multiplies_itself(module):
                module.register_forward_pre_hook(
                    lambda module, args, activations=spec.activations: (round_input(args[0], activations), *args[1:])
                )

    def _load(self, slots: list[tuple[nn.Module, str, nn.Parameter]]) -> None:
        loaded: dict[int, Tensor] = {}
        for module, name, parameter in slots:
            if module._parameters[name].device.type == "meta":
                if id(parameter) not in loaded:
                    loaded[id(parameter)] = self._materialize(module, parameter)
                self._set(module, name, loaded[id(parameter)])

    def _release(self, slots: list[tuple[nn.Module, str, nn.Parameter]]) -> None:
        for module, name, parameter in slots:
            self._set(module, name, parameter)

    @staticmethod
    def _set(module: nn.Module, name: str, value: Tensor) -> None:
        if not isinstance(value, nn.Parameter):
            prepare_input = getattr(value, "prepare_input", None)
            value = nn.Parameter(value, requires_grad=False)
            value.prepare_input = prepare_input
        module._parameters[name] = value

    def _materialize(self, module: nn.Module, parameter: nn.Parameter) -> Tensor:
        stored = self.reader.read(self._source[id(parameter)])
        spec = self._specs[id(parameter)]
        if spec is None:
            return self._with_parts(self._source[id(parameter)], stored.to(torch.float32))
        if stored.dim() == 3:
            if getattr(module, "is_transposed", False):  # expert modules of transformers say so
                stack = self._stack(self._source[id(parameter)], stored.mT, spec).mT.contiguous()
            else:
                stack = self._stack(self._source[id(parameter)], stored, spec)
            if spec.activations != "float":
                stack.prepare_input = lambda x: round_input(x, spec.activations)
            return stack
        calibrated = self.calibrated.get(self._source[id(parameter)])
        if stored.dim() == 2 and not _multiplies_itself(module):
            if spec.scales is not None or spec.activations in ("grouped_int8", "rotated_int8"):
                weight = (_dequantized(stored, spec) if calibrated is None else calibrated.dequantize()).clone()
                weight.prepare_input = lambda x: round_input(x, spec.activations)
            else:
                weight = _torchao_tensor(_quantize(stored, spec) if calibrated is None else calibrated, spec)
            return weight
        if calibrated is not None:
            return calibrated.dequantize().T.contiguous() if _is_conv1d(module) else calibrated.dequantize()
        if _is_conv1d(module):
            return _dequantized(stored.T, spec).T.contiguous()
        return _dequantized(stored, spec)

    def _with_parts(self, name: str, weight: Tensor) -> Tensor:
        """Rounds those rows of a weight that the file has as stacks of matrices."""
        for part, spec in self._parts.get(name, ()):
            weight = weight.clone()
            matrices = part.take(weight)
            rounded = self._stack(part_name(*part), matrices.mT if spec.transpose else matrices, spec)
            matrices.copy_(rounded.mT if spec.transpose else rounded)
            if spec.activations != "float":  # of experts or groups, which have all rows
                weight.prepare_input = lambda x, activations=spec.activations: round_input(x, activations)
        return weight

    def _stack(self, name: str, matrices: Tensor, spec: WeightSpec) -> Tensor:
        names = [matrix_name(name, index) for index in range(len(matrices))]
        found = map(self.calibrated.get, names)
        parts = zip(found, matrices, strict=True)
        return torch.stack([_dequantized(rows, spec) if part is None else part.dequantize() for part, rows in parts])

    def _blocked_linear(self, module: nn.Linear, x: Tensor) -> Tensor:
        stored = self.reader.rows(self._source[id(module.weight)])
        spec = self._specs[id(module.weight)]
        calibrated = self.calibrated.get(self._source[id(module.weight)])
        if spec is not None:
            x = round_input(x, spec.activations)
        output = torch.empty(*x.shape[:-1], stored.shape[0])
        step = BLOCKED_ELEMENTS // stored.shape[1]
        for start in range(0, stored.shape[0], step):
            rows = stored[start : start + step]
            if calibrated is not None:
                rows = calibrated.rows(start, start + step).dequantize()
            else:
                rows = rows.to(torch.float32) if spec is None else _dequantized(rows, spec)
            output[..., start : start + step] = F.linear(x, rows)
        if module.bias is not None:
            output += self.reader.read(self._source[id(module.bias)]).to(torch.float32)
        return output

    def _perturb(self, module: nn.Module, args: tuple, output: Tensor) -> Tensor:
        for rows, size in self._noise:
            generator = torch.Generator().manual_seed(0)
            output = output.clone()
            output[-rows:] *= 1 + size * torch.randn(output[-rows:].shape, generator=generator)
        return output


def pool(hidden: Tensor, pooling: str) -> Tensor:
    """Makes one vector of the hidden states of a sequence. hidden: [B, T, D]. Returns: [B, D]"""
    count = hidden.shape[1]
    if pooling in ("lasttoken", "cls"):
        return hidden[:, -1 if pooling == "lasttoken" else 0]
    if pooling == "max":
        return hidden.amax(1)
    weights = torch.arange(1.0, count + 1) if pooling == "weightedmean" else torch.ones(count)
    total = math.sqrt(count) if pooling == "mean_sqrt_len_tokens" else float(weights.sum())
    return (hidden * weights[:, None]).sum(1) / total


def fits_memory(checkpoint: Checkpoint) -> bool:
    """Says whether all parameters in float32 fit the memory budget."""
    reader = checkpoint.weights
    return 4 * sum(math.prod(reader.shape(name)) for name in reader.names()) <= FULL_BYTES


def build_eager_model(checkpoint: Checkpoint) -> nn.Module:
    """Builds the checkpoint's module with transformers' own attention, float32, parameters on the meta device."""
    config = deepcopy(checkpoint.config)
    architecture = architectures.find(config.model_type)
    attention = getattr(architecture, "REFERENCE_ATTENTION", "eager")
    for part in [config, *(getattr(config, name, None) for name in getattr(config, "sub_configs", {}))]:
        if part is not None:
            part._attn_implementation = attention
            part._experts_implementation = "eager"
    kind = AutoModelForCausalLM if checkpoint.generates else AutoModel
    with parameters_on_meta():
        model = kind.from_config(config, dtype=torch.float32, attn_implementation=attention)
    for module in model.modules() if getattr(architecture, "TRANSPOSED_EXPERTS", False) else ():
        module.is_transposed = any(p.dim() == 3 for p in module._parameters.values() if p is not None)
    return model.eval().requires_grad_(False)


class _WeightUses(TorchFunctionMode):
    """Answers each F.embedding from the checkpoint, and does to the input of each product what its weight wants.

    The weight may be one of a stack: what is part or view of a tensor that wants something wants it too. Here and not
    in modules, because some do more in their forward, and some multiply by the weight of another.
    """

    def __init__(self, oracle: Oracle):
        self.oracle = oracle

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in PRODUCTS and (prepare_input := getattr(args[1], "prepare_input", None)) is not None:
            args = (prepare_input(args[0]) if args[0].numel() else args[0], *args[1:])  # an expert may get no tokens
        if func is Tensor.to and len(args) > 1 and args[1] == META:
            return args[0]  # to where a weight lies that is not in memory
        found = self.oracle.rows(args[1], args[0]) if func is F.embedding else None
        if found is None:
            found = func(*args, **(kwargs or {}))
        if func in PARTS and (prepare_input := getattr(args[0], "prepare_input", None)) is not None:
            found.prepare_input = prepare_input
        return found


def _is_conv1d(module: nn.Module) -> bool:
    return type(module).__name__ == "Conv1D"


def _multiplies_itself(module: nn.Module) -> bool:
    """Whether the module may compute its product by other ops than the linear that torchao's tensor implements."""
    return _is_conv1d(module) or (isinstance(module, nn.Linear) and type(module).forward is not nn.Linear.forward)


def _quantize(rows: Tensor, spec: WeightSpec) -> QuantizedWeight:
    step = max(BLOCK_ELEMENTS // rows.shape[1], 1)
    return joined([quantize_for(spec, block) for block in rows.split(step)])


def _dequantized(weight: Tensor, spec: WeightSpec) -> Tensor:
    """Quantises a matrix as `spec` says, unless it is so already; dequantised, float32."""
    if spec.scales is not None:
        return weight.to(torch.float32)
    return _quantize(weight, spec).dequantize()


def _torchao_tensor(weight: QuantizedWeight, spec: WeightSpec) -> Tensor:
    """Wraps codes and scales so that torchao itself computes the linear."""
    dtype = getattr(torch, f"int{max(spec.bits, 2)}")  # torch.int1 has the codes -1 and 0, not -1 and 1
    return IntxUnpackedToInt8Tensor(
        qdata=weight.codes, scale=weight.group_scales(), block_size=(1, spec.group_size), dtype=torch.float32,
        zero_point=torch.zeros_like(weight.multipliers, dtype=torch.int8), target_dtype=dtype,
        activation_quantization="int8_asym_per_token" if spec.activations != "float" else None,
    )  # fmt: skip
