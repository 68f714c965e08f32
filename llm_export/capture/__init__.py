"""Exports a Hugging Face causal language model, on fake weights, to a graph of ATen and `mote::` ops."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FunctionType

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import InputKind
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    AutoModel,
    AutoModelForCausalLM,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

from llm_export.capture import (  # noqa: F401  (they register)
    architectures,
    assistants,
    complex_numbers,
    draft_heads,
    eagle_heads,
    experts,
    guards,
    index_scores,
    recurrences,
    recurrent_ops,
    rope,
    sparse_ops,
    stacks,
)
from llm_export.capture.methods import Captured
from llm_export.capture.programs import number_by_position, remove_redundant, with_outputs
from llm_export.checkpoint import Checkpoint
from llm_export.checkpoint.embedding import is_bidirectional
from llm_export.errors import UnsupportedError
from llm_export.program.instructions import EMBED, MTP
from llm_export.program.specs import StateSpec, WeightSpec
from llm_export.quiet import prints_in_notes

# Mask functions of transformers that mote::attention replaces. A call holds one sequence: packing masks hide nothing.
CHUNKS = "chunked_overlay"
EXPRESSIBLE_MASKS = {
    CHUNKS,
    "and_masks",
    "causal_mask_function",
    "packed_sequence_compatibility_function",
    "packed_sequence_mask_function",
    "remap_positions_for_packed_sequence",
    "sliding_window_causal_mask_function",
    "sliding_window_overlay",
}
# What a model in which tokens attend to those that follow them adds to these.
BIDIRECTIONAL_MASKS = {"_bidirectional_window_overlay", "bidirectional_mask_function", "or_masks"}
Head = draft_heads.DraftHead | assistants.Assistant | eagle_heads.EagleHead
Step = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
IMPLEMENTATION = "mote"  # the name under which transformers knows our attention, mask and experts functions


class CaptureContext:
    """What the substituted functions share during one trace: positions in, states out. Not thread-safe."""

    current: CaptureContext | None = None

    def __init__(self, model: PreTrainedModel, model_type: str):
        self.model, self.model_type = model, model_type
        self.names = {id(module): name for name, module in model.named_modules()}
        self.positions: Tensor | None = None
        self.states: list[StateSpec] = []
        self.num_kept = 0  # states of programs that were traced before
        self.keeps_all = is_bidirectional(model.config)  # whether caches hold what a window hides too
        self.touched: set[str] = set()  # paths of modules that used a state
        self._cached: list[tuple[Tensor, Tensor, int, int]] = []  # keys, values, window, state
        self.bidirectional = is_bidirectional(model.config)
        self.mask: Tensor | None = None  # what models get as mask; set for models that compute with it
        self.masks: dict[int, tuple[Tensor, dict]] = {}  # those that say more, by id, as arguments of `attention`

    def start(self, positions: Tensor) -> None:
        """Begins a trace; positions: int64 [1, T]."""
        self.positions = positions
        del self.states[self.num_kept :]
        self.touched.clear()
        self._cached.clear()
        self.masks.clear()

    def add_state(self, module: nn.Module, **spec) -> int:
        """Declares a state owned by `module` and returns its index."""
        path = self.names[id(module)]
        taken = sum(state.name == path or state.name.startswith(f"{path}#") for state in self.states)
        # Layers that share one module (or run it twice) have a state for each run.
        self.states.append(StateSpec(name=f"{path}#{taken}" if taken else path, **spec))
        return len(self.states) - 1

    def attention(
        self, module: nn.Module, q: Tensor, k: Tensor, v: Tensor, *, scale: float, window: int = 0,
        softcap: float = 0.0, sinks: Tensor | None = None, alibi_slopes: Tensor | None = None,
        chosen: Tensor | None = None, position_bias: Tensor | None = None, chunked: bool = False, stride: int = 1,
        with_lse: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
        """Calls `mote::attention` for one layer. Declares its cache, or shares the cache that already holds k and v.

        q: [1, H, T, D]; k: [1, Hkv, T, D]; v: [1, Hkv, T, Dv]; chosen: int64 [1, T, G, K], the positions that a token
        sees, ascending, -1 for none; position_bias: [1, T, H, E], by distance; chunked: windows begin at multiples of
        `window`; stride: of the keys, those at the end of each `stride` positions are seen. Returns: [1, T, H, Dv];
        with_lse: and [1, T, H], the logarithm of the sum that the softmax divides by
        """
        self.touched.add(self.names[id(module)])
        state = self._state_with(k, v, window) if v.shape[3] == q.shape[3] else None
        if state is not None:
            k = v = None
        else:
            state = self.add_state(
                module, kind="kv_cache", num_heads=int(k.shape[1]), head_dim=int(k.shape[3]),
                value_head_dim=int(v.shape[3]), window=0 if self.keeps_all else window, stride=stride,
            )  # fmt: skip
            self._cached.append((k, v, window, state))
        op = torch.ops.mote.attention_lse if with_lse else torch.ops.mote.attention
        return op(
            q, k, v, self.positions, sinks, alibi_slopes, chosen, position_bias, state=state, scale=scale,
            window=window, softcap=softcap, bidirectional=int(self.bidirectional), chunked=int(chunked), stride=stride,
        )  # fmt: skip

    def indexer(
        self, module: nn.Module, q: Tensor, k: Tensor, weights: Tensor | None = None, *, topk: int, block: int = 1,
        stride: int = 1,
    ) -> Tensor:  # fmt: skip
        """Calls `mote::indexer` and declares its cache.

        q: [1, H, T, D]; k: [1, G, T, D]; weights: [1, T, H]; stride: the keys at the end of each `stride` positions are
        scored. Returns: int64 [1, T, G, topk * block + block - 1], [1, T, G, topk] with a stride
        """
        self.touched.add(self.names[id(module)])
        heads, width = int(k.shape[1]), int(k.shape[3])
        state = self.add_state(
            module, kind="kv_cache", num_heads=heads, head_dim=width, value_head_dim=1, window=0, stride=stride
        )
        return torch.ops.mote.indexer(q, k, self.positions, weights, state=state, topk=topk, block=block, stride=stride)

    def _state_with(self, k: Tensor, v: Tensor, window: int) -> int | None:
        """Returns the state that already holds these very tensors in this trace."""
        for keys, values, cached_window, state in self._cached:
            if keys is k and values is v and cached_window == window:
                return state
        return None

    def lend(self, state: int, window: int) -> tuple[Tensor, Tensor]:
        """Returns what stands for the keys and values of a state in attention that reads and does not append."""
        spec = self.states[state]
        keys, values = (torch.zeros(1, spec.num_heads, 1, width) for width in (spec.head_dim, spec.value_head_dim))
        self._cached.append((keys, values, window, state))
        return keys, values

    def short_conv(self, module: nn.Module, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Calls `mote::short_conv` and declares its state.

        x: [1, T, C]; weight: [C, L]; bias: [C]. Returns: [1, T, C]
        """
        self.touched.add(self.names[id(module)])
        channels, size = (int(n) for n in weight.shape)
        state = self.add_state(module, kind="recurrent", shape=(1, size - 1, channels))
        return torch.ops.mote.short_conv(x, weight, bias, state=state)

    def linear_attention(
        self, module: nn.Module, q: Tensor, k: Tensor, v: Tensor, decay: Tensor | None = None,
        beta: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """Calls `mote::linear_attention` and declares its state.

        q, k: [1, T, Hk, N]; v: [1, T, H, P]; decay: [1, T, H] or [1, T, H, N]; beta: [1, T, H]. Returns: [1, T, H, P]
        """
        self.touched.add(self.names[id(module)])
        heads, width = (int(n) for n in v.shape[2:])
        state = self.add_state(module, kind="recurrent", shape=(1, heads, width, int(k.shape[3])))
        return torch.ops.mote.linear_attention(q, k, v, decay, beta, state=state)


def _attention_function(
    module,
    query,
    key,
    value,
    attention_mask,
    scaling=None,
    dropout=0.0,
    sliding_window=None,
    softcap=None,
    s_aux=None,
    sinks=None,
    **kwargs,
):
    """The attention function that transformers calls; see AttentionInterface."""
    context = CaptureContext.current
    _, said = context.masks.get(id(attention_mask), (None, {}))
    if not said and attention_mask is not None and attention_mask is not context.mask:
        raise UnsupportedError(
            context.model_type, f"{type(module).__name__} chooses the keys that a token attends to by a mask of its own"
        )
    bias, indices = kwargs.get("position_bias"), kwargs.get("indices")
    if bias is not None and not isinstance(bias.shape[-1], int):  # [1, H, T, E] by distance is what the op takes
        raise UnsupportedError(
            context.model_type,
            f"{type(module).__name__} adds a bias by position to the scores, which mote::attention does not offer",
        )
    scale = float(query.shape[-1] ** -0.5 if scaling is None else scaling)
    softcap = softcap if softcap is not None else kwargs.get("attn_logit_softcapping")
    output = context.attention(
        module,
        query,
        key,
        value,
        scale=scale,
        softcap=float(softcap or 0.0),
        sinks=s_aux if sinks is None else sinks.squeeze(-1).transpose(1, 2),  # [1, H, T, 1]: of each token
        position_bias=None if bias is None else bias.transpose(1, 2),
        **(
            {
                "window": int(sliding_window or 0),
                "chosen": None if indices is None else indices.long().unsqueeze(2),  # [1, T, K]
            }
            | said
        ),
    )
    return output, None


def _mask_function(*args, **kwargs) -> Tensor | None:
    """The mask function that transformers calls: `mote::attention` knows causality and window by itself."""
    context = CaptureContext.current
    accepted = EXPRESSIBLE_MASKS
    if context.bidirectional:
        accepted = accepted | BIDIRECTIONAL_MASKS | {type(module).__name__ for module in context.model.modules()}
    parts = _parts(kwargs.get("mask_function"))
    for part in sorted(set(parts) - accepted):
        raise UnsupportedError(context.model_type, f"mote::attention does not offer the mask '{part}'")
    if CHUNKS not in parts:
        return context.mask
    (size,) = (value for value in parts[CHUNKS] if isinstance(value, int))
    mask = torch.zeros(1, 1, 1, 1)
    context.masks[id(mask)] = mask, {"window": size, "chunked": True}
    return mask


def _parts(value: object) -> dict[str, list]:
    """Returns the names of the functions that transformers combined into a mask function, with what they enclose."""
    if isinstance(value, tuple | list):
        return {name: cells for part in value for name, cells in _parts(part).items()}
    if not isinstance(value, FunctionType):
        return {}
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    return {value.__qualname__.split(".")[0]: cells} | _parts(cells)


AttentionInterface.register(IMPLEMENTATION, _attention_function)
AttentionMaskInterface.register(IMPLEMENTATION, _mask_function)
ALL_EXPERTS_FUNCTIONS.register(IMPLEMENTATION, experts.call)


@contextlib.contextmanager
def parameters_on_meta() -> Iterator[None]:
    """Inside, new modules have parameters on the meta device and buffers with their real values."""
    register_parameter, init_weights = nn.Module.register_parameter, PreTrainedModel.init_weights

    def on_meta(module, name, parameter):
        if isinstance(parameter, nn.Parameter) and parameter.device.type != "meta":
            parameter = nn.Parameter(parameter.to("meta"), requires_grad=False)
        register_parameter(module, name, parameter)

    nn.Module.register_parameter = on_meta
    PreTrainedModel.init_weights = lambda self: self.tie_weights()
    try:
        yield
    finally:
        nn.Module.register_parameter, PreTrainedModel.init_weights = register_parameter, init_weights


def build_model(config: PretrainedConfig, with_head: bool = True) -> PreTrainedModel:
    """Builds the causal LM of `config`, or what it is without its head, in float32.

    Its parameters are on the meta device and tied.
    """
    for part in [config, *(getattr(config, name, None) for name in getattr(config, "sub_configs", {}))]:
        if part is not None:
            part._attn_implementation = IMPLEMENTATION
            part._experts_implementation = IMPLEMENTATION
            part.use_cache = False
    with parameters_on_meta():
        kind = AutoModelForCausalLM if with_head else AutoModel
        model = kind.from_config(config, dtype=torch.float32, attn_implementation=IMPLEMENTATION)
    return model.eval().requires_grad_(False)


def _to_fake_parameters(model: nn.Module, mode: FakeTensorMode) -> None:
    """Replaces meta parameters by fake CPU float32 ones; tied parameters stay one object."""
    fakes: dict[int, nn.Parameter] = {}
    with mode:
        for module in model.modules():
            for name, parameter in list(module._parameters.items()):
                if parameter is None:
                    continue
                if id(parameter) not in fakes:
                    fake = torch.empty(parameter.shape, dtype=torch.float32, device="cpu")
                    fakes[id(parameter)] = nn.Parameter(fake, requires_grad=False)
                module._parameters[name] = fakes[id(parameter)]


def _use_forward(
    model: PreTrainedModel, context: CaptureContext, checkpoint: Checkpoint, drafts: Head | None
) -> dict[str, tuple[int, ...]]:
    """Gives `model` the signature (input_ids, position_ids) -> outputs, with no wrapper that renames parameters.

    Returns: the outputs of each method: "verify", logits and what a head reads; "embed", hidden states
    """
    original = model.forward
    setup = checkpoint.embedding
    layers = setup.dense if setup is not None else ()
    for index, layer in enumerate(layers):
        model.register_buffer(f"dense_{index}_weight", layer.weight, persistent=False)
        model.register_buffer(f"dense_{index}_bias", layer.bias, persistent=False)
    hidden: list[Tensor] = []
    if checkpoint.generates and (setup is not None or drafts is not None):
        # Some classes call a part of their base model, whose output is then what the head reads.
        head = model.get_output_embeddings()
        if head is not None:
            head.register_forward_pre_hook(lambda module, args: hidden.append(args[0]))
        model.base_model.register_forward_hook(lambda module, args, output: hidden.append(output[0]))

    def forward(input_ids, position_ids):
        context.start(position_ids)
        hidden.clear()
        output = original(input_ids, position_ids=position_ids, use_cache=False)
        outputs = (output.logits,) if checkpoint.generates else ()
        if drafts is not None:
            outputs += (drafts.reads(hidden[0]),)
        if setup is None:
            return outputs
        states = hidden[0] if checkpoint.generates else output[0]
        for index, layer in enumerate(layers):
            weight, bias = (model.get_buffer(f"dense_{index}_{name}") for name in ("weight", "bias"))
            states = replace(layer, weight=weight, bias=bias)(states)
        return (*outputs, states)

    model.forward = forward
    count = checkpoint.generates + (drafts is not None)
    return ({"verify": tuple(range(count))} if count else {}) | ({EMBED: (count,)} if setup is not None else {})


def _export(model: PreTrainedModel, mode: FakeTensorMode, **others: int) -> ExportedProgram:
    """others: width of each further input, float32 [1, T, width]"""
    with mode:
        inputs = (torch.zeros(1, 7, dtype=torch.int64), torch.arange(7).unsqueeze(0))
        inputs += tuple(torch.zeros(1, 7, width) for width in others.values())
    dynamic = {name: {1: Dim.DYNAMIC} for name in ("input_ids", "position_ids", *others)}
    program = torch.export.export(model, inputs, dynamic_shapes=dynamic, strict=False)
    return program.run_decompositions({})


def _weights_and_constants(
    program: ExportedProgram, model: PreTrainedModel, checkpoint: Checkpoint
) -> tuple[dict[str, WeightSpec], dict[str, Tensor]]:
    """Returns a WeightSpec for each tensor that the graph reads, and the values of those that the checkpoint lacks."""
    buffers = dict(model.named_buffers())
    first_name = {id(parameter): name for name, parameter in model.named_parameters()}
    specs: dict[str, WeightSpec] = {}
    weights, constants = {}, {}
    used = {node.name for node in program.graph.nodes if node.op == "placeholder" and node.users}
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.USER_INPUT or spec.arg.name not in used:
            continue
        if spec.target in checkpoint.weights:
            value = model.get_parameter_or_buffer(spec.target)
            source = first_name.get(id(value), spec.target)
            specs.setdefault(source, WeightSpec((source,), tuple(value.shape), checkpoint.weights.dtype(source)))
            weights[spec.target] = specs[source]
        else:
            value = buffers[spec.target] if spec.kind == InputKind.BUFFER else program.constants[spec.target]
            constants[spec.target] = value.detach()
            weights[spec.target] = WeightSpec((spec.target,), tuple(value.shape), value.dtype)
    return weights, constants


def capture(checkpoint: Checkpoint) -> Captured:
    """Captures the module of `checkpoint` as `verify`: logits float32 [1, T, vocab_size] of every position.

    Where it is to give embeddings there is `embed` beside or instead: hidden states float32 [1, T, dimensions]; where
    it has heads for multi-token prediction that Mote runs, `mtp`, `mtp_2` and so on.
    Errors: UnsupportedError if the module needs what `mote::` ops do not offer. Cost: seconds; no weight is read.
    """
    model_type = checkpoint.config.model_type
    architecture = architectures.find(model_type)
    if architecture is None:
        guards.check_layer_types(checkpoint.config, model_type)
    if hasattr(architecture, "prepare"):
        architecture.prepare(IMPLEMENTATION)
    model = build_model(checkpoint.config, checkpoint.generates)
    with parameters_on_meta():
        head = _drafts_for(model, checkpoint)
    if head is not None:
        head.attach()
    checkpoint.weights.bind(model, head.rename if head is not None else None)
    if isinstance(head, eagle_heads.EagleHead):
        head.share(checkpoint.weights)
    experts.prepare(model, model_type)
    rope.make_pure(model)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    _to_fake_parameters(model, mode)
    context = CaptureContext(model, model_type)
    if index_scores.chooses_keys(model.config):
        context.mask = torch.zeros(1, 1, 1, 1)  # such classes compute with it
    if architecture is not None:
        architecture.patch(model, context)
    outputs = _use_forward(model, context, checkpoint, head)
    program = _traced(model, context, mode)
    guards.check_layers(model, model_type, context.touched)
    guards.check_indexers(program, model, model_type)
    weights, constants = _weights_and_constants(program, model, checkpoint)
    programs = {name: with_outputs(program, indices) for name, indices in outputs.items()}
    if head is not None:
        if isinstance(head, assistants.Assistant):
            head.prepare(context)
        for name, forward in zip(MTP, head.forwards, strict=False):
            programs[name] = _trace_head(head, forward, context, mode)
            more_weights, more_constants = _weights_and_constants(programs[name], model, checkpoint)
            weights, constants = more_weights | weights, more_constants | constants
    stacks.separate(programs.values(), weights)
    return Captured(programs, list(context.states), weights, constants, model_type=model_type)


def _traced(model: PreTrainedModel, context: CaptureContext, mode: FakeTensorMode, **others: int) -> ExportedProgram:
    """Traces `model.forward`; others: as for `_export`. Errors: UnsupportedError"""
    CaptureContext.current = context
    try:
        with (
            prints_in_notes(),
            recurrences.replaced(model, context),
            index_scores.replaced(model, context),
            complex_numbers.as_pairs(),
        ):
            program = _export(model, mode, **others)
    except Exception as error:  # torch.export has no common base class
        raise guards.explain(error, context.model_type) from error
    finally:
        CaptureContext.current = None
    number_by_position(program)
    remove_redundant(program)
    guards.check_graph(program, context.model_type)
    return program


def _drafts_for(model: PreTrainedModel, checkpoint: Checkpoint) -> Head | None:
    """Returns what comes with a model to draft for it; its own head is left out where another checkpoint does that."""
    return (
        eagle_heads.build(model, checkpoint, build_model)
        or assistants.build(model, checkpoint, build_model)
        or draft_heads.find(model, checkpoint)
    )


def _trace_head(head: Head, step: Step, context: CaptureContext, mode: FakeTensorMode) -> ExportedProgram:
    """Traces a step of the head behind the model; states of its own follow those of the model."""

    def forward(input_ids, position_ids, hidden_states):
        context.start(position_ids)
        return step(input_ids, position_ids, hidden_states)

    context.num_kept = len(context.states)
    context.keeps_all = True
    head.model.forward = forward
    return _traced(head.model, context, mode, hidden_states=head.width)
