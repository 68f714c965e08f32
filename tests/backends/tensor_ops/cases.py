"""Single instructions for backends that write assets, with what PyTorch computes for each; all become one asset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from backends.tensor_ops.executor import Interpreter
from backends.tensor_ops.reference import Reference
from llm_export.capture import ops, recurrent_ops, sparse_ops
from llm_export.partition.backend import Subgraph
from llm_export.program.instructions import Numbers
from llm_export.program.specs import StateSpec
from llm_export.quantize.affine import QuantizedWeight
from llm_export.quantize.pack import pack
from tests.backends.parts import Part, Stack, Typed, dims, linear_attributes, numbers, quantised, random

TOLERANCE = 1e-5  # of the largest difference, relative to the largest expected number
TOKENS, CAPACITY, HEADS, KV_HEADS, WIDTH = 5, 16, 4, 2, 8
FIRST = 3  # position of the first token
POSITIONS = torch.arange(FIRST, FIRST + TOKENS)[None]


@dataclass
class Case:
    """inputs: of the part   expected: its outputs in PyTorch   states: what the part finds, by name

    Keys, values and states are numbers that a float16 holds: some vendors have states of no other.
    """

    part: Part
    inputs: list[Tensor]
    expected: Callable[[], Tensor | Sequence[Tensor]]
    states: dict[str, Tensor]


CASES: dict[str, Case] = {}


def halves(*shape: int, seed: int = 0) -> Tensor:
    return random(*shape, seed=seed).half().float()


def dequantised(weight):
    return weight.dequantize() if isinstance(weight, QuantizedWeight | Stack) else weight


def add(name: str, op: str, operands: Sequence, attributes: dict, compute: Callable, spec: StateSpec | None = None,
        states: dict[str, Tensor] | None = None) -> None:  # fmt: skip
    """operands: tensors are inputs, weights in a tuple of one, None absent; compute: of all operands, dequantised."""
    plain = [dequantised(x[0]) if isinstance(x, tuple) else x for x in operands]
    inputs = [x for x in operands if isinstance(x, Tensor)]
    given = [
        x[0] if isinstance(x, tuple) else x if x is None else Typed(x.shape, x.dtype) for x in operands
    ]
    outputs = compute(*plain)
    outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
    part = Part(op, given, [Typed(y.shape, y.dtype) for y in outputs], attributes)
    for index, weight in enumerate(part.specs):
        part.specs[index] = replace(weight, sources=(f"{name}.{weight.name}",))
    part.subgraph = replace(part.subgraph, states=() if spec is None else (spec,))
    CASES[name] = Case(part, inputs, lambda: outputs, states or {})


def integers(*values: int) -> tuple:
    return dims(*values)


X, Y = random(3, 4, 6), random(3, 4, 6, seed=9)
I = torch.arange(24).reshape(4, 6) % 7 - 3  # noqa: E741
MASK = X > 0

for name in (
    "abs", "exp", "sin", "cos", "tanh", "sigmoid", "silu", "relu", "erf", "neg", "square", "floor", "ceil", "round",
    "sign", "softplus", "expm1",
):  # fmt: skip
    compute = getattr(F if name in ("silu", "softplus") else torch, name)
    add(name, f"aten.{name}", [X], {}, compute)
for name in ("log", "sqrt", "rsqrt", "reciprocal", "log1p", "log2"):
    add(name, f"aten.{name}", [X.abs() + 0.1], {}, getattr(torch, name))
for kind in ("none", "tanh"):
    add(f"gelu_{kind}", "aten.gelu", [X], {"approximate": kind}, lambda x, kind=kind: F.gelu(x, approximate=kind))
add("clamp", "aten.clamp", [X], {"min": numbers(-0.5), "max": numbers(0.7)}, lambda x: x.clamp(-0.5, 0.7))
add("clamp_min", "aten.clamp", [I], {"min": numbers(0.0)}, lambda x: x.clamp(min=0))
add("elu", "aten.elu", [X], {"alpha": numbers(1.5)}, lambda x: F.elu(x, 1.5))
add("leaky_relu", "aten.leaky_relu", [X], {"negative_slope": numbers(0.2)}, lambda x: F.leaky_relu(x, 0.2))
add("logical_not", "aten.logical_not", [MASK], {}, torch.logical_not)
add("bitwise_not", "aten.bitwise_not", [I], {}, torch.bitwise_not)
add("isnan", "aten.isnan", [torch.where(MASK, X, torch.nan)], {}, torch.isnan)
for name in ("add", "sub", "mul", "div", "maximum", "minimum", "fmod", "remainder", "floor_divide"):
    add(name, f"aten.{name}", [X, Y[:1]], {}, getattr(torch, name))
for name in ("add", "mul", "fmod", "remainder", "floor_divide", "eq", "lt"):
    add(f"{name}_int", f"aten.{name}", [I, torch.tensor([1, 2, 3, -1, -2, -3])], {}, getattr(torch, name))
add("pow", "aten.pow", [X.abs(), (torch.tensor(1.7),)], {}, torch.pow)
for name in ("eq", "ne", "lt", "le", "gt", "ge"):
    add(name, f"aten.{name}", [X, torch.where(MASK, X, Y)], {}, getattr(torch, name))
for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or"):
    add(name, f"aten.{name}", [MASK, Y > 0], {}, getattr(torch, name))
add("where", "aten.where", [MASK, X, (torch.tensor(-2.0),)], {}, torch.where)

add("permute", "aten.permute", [X], {"dims": integers(2, 0, 1)}, lambda x: x.permute(2, 0, 1))
add("view", "aten.view", [X], {"size": integers(12, 6)}, lambda x: x.view(12, 6))
add("cast", "aten._to_copy", [X * 3], {}, lambda x: x.long())
add("cast_bool", "aten._to_copy", [I], {}, lambda x: x.bool())
add("expand", "aten.expand", [X[:1]], {"size": integers(3, 4, 6)}, lambda x: x.expand(3, 4, 6))
add("slice", "aten.slice", [X], {"dim": integers(2), "start": integers(1), "end": integers(6), "step": integers(2)},
    lambda x: x[..., 1:6:2])  # fmt: skip
add("select", "aten.select", [X], {"dim": integers(1), "index": integers(2)}, lambda x: x[:, 2])
add("cat", "aten.cat", [X, Y], {"dim": integers(1)}, lambda x, y: torch.cat((x, y), 1))
add("repeat_interleave", "aten.repeat_interleave", [X], {"dim": integers(1), "repeats": integers(3)},
    lambda x: x.repeat_interleave(3, 1))  # fmt: skip
add("pad", "aten.constant_pad_nd", [X], {"pad": integers(1, -2, 0, 2), "value": numbers(0.5)},
    lambda x: F.pad(x, (1, -2, 0, 2), value=0.5))  # fmt: skip
SIX = random(2, 1, 3, 1, 2, 4)
add("expand_six", "aten.expand", [SIX], {"size": integers(2, 1, 3, 5, 2, 4)}, lambda x: x.expand(2, 1, 3, 5, 2, 4))
add("permute_six", "aten.permute", [SIX], {"dims": integers(4, 5, 0, 1, 3, 2)}, lambda x: x.permute(4, 5, 0, 1, 3, 2))
add("abs_six", "aten.abs", [SIX], {}, torch.abs)
for name in ("tril", "triu"):
    add(name, f"aten.{name}", [X], {"diagonal": integers(1)}, lambda x, name=name: getattr(torch, name)(x, 1))
INDEX = torch.tensor([2, 0, 1, 1])
add("index_select", "aten.index_select", [X, INDEX], {"dim": integers(1)}, lambda x, i: x.index_select(1, i))
PICKED = torch.tensor([[[1, 0]], [[3, 5]], [[2, 2]]])
add("gather", "aten.gather", [X, PICKED], {"dim": integers(2)}, lambda x, i: x.gather(2, i))
PLACES = torch.tensor([[1, 0], [3, 5], [2, 4], [0, 5]])
add("scatter", "aten.scatter", [X[0], PLACES, Y[0, :, :2]], {"dim": integers(1)}, lambda x, i, s: x.scatter(1, i, s))

for name in ("sum", "mean", "amax", "amin", "prod"):
    for axes, keepdim in (((2,), 1), ((0, 2), 0)):
        if name == "prod" and len(axes) > 1:
            continue
        add(f"{name}_{len(axes)}", f"aten.{name}", [X], {"dims": integers(*axes), "keepdim": integers(keepdim)},
            lambda x, name=name, axes=axes, keepdim=keepdim: getattr(torch, name)(
                x, axes[0] if name == "prod" else axes, keepdim=bool(keepdim)))  # fmt: skip
for name in ("any", "all"):
    add(name, f"aten.{name}", [MASK], {"dims": integers(1), "keepdim": integers(0)},
        lambda x, name=name: getattr(torch, name)(x, 1))  # fmt: skip
for name in ("softmax", "log_softmax", "cumsum"):
    add(name, f"aten.{name}", [X], {"dim": integers(1)}, lambda x, name=name: getattr(torch, name)(x, 1))
for largest in (0, 1):
    add(f"topk_{largest}", "aten.topk", [X], {"dim": integers(2), "k": integers(3), "largest": integers(largest)},
        lambda x, largest=largest: tuple(x.topk(3, 2, largest=bool(largest))))  # fmt: skip
add("sort", "aten.sort", [I], {"dim": integers(1), "descending": integers(1)},
    lambda x: tuple(x.sort(dim=1, descending=True, stable=True)))  # fmt: skip
add("argmax", "aten.argmax", [X], {"dim": integers(2), "keepdim": integers(0)}, lambda x: x.argmax(2))
add("min", "aten.min", [X], {"dim": integers(1), "keepdim": integers(1)}, lambda x: tuple(x.min(1, keepdim=True)))
add("bmm", "aten.bmm", [X, Y.mT.contiguous()], {}, torch.matmul)

ROWS = random(2, 5, 64)
for bits in (1, 2, 3, 4, 5, 6, 8):
    for per_channel in (False, True):
        weight = quantised(random(48, 64, seed=bits), bits, 32, per_channel, signed=bits > 1 and not per_channel)
        add(f"linear_{bits}_{int(per_channel)}", "mote.linear", [ROWS, (weight,), None, None, None],
            linear_attributes("float"), ops.linear)  # fmt: skip
DENSE, BIAS, NORM = random(20, 64), random(20), random(64)
attributes = linear_attributes("float", "rms", 1)
add("linear_of_all", "mote.linear", [ROWS, (DENSE,), (BIAS,), random(2, 5, 20), (NORM,)], attributes,
    lambda *x: ops.linear(*x, norm="rms", norm_eps=1e-5, norm_unit_offset=1))  # fmt: skip
for kind in (torch.float16, torch.bfloat16):
    add(f"linear_{str(kind)[6:]}", "mote.linear", [ROWS, (DENSE.to(kind),), None, None, None],
        linear_attributes("float"), lambda x, w, *rest: ops.linear(x, w.float(), *rest))  # fmt: skip
for function in ("silu", "gelu", "gelu_tanh", "relu", "sigmoid", "identity", "relu_squared"):
    add(f"gated_{function}", "mote.gated_linear", [ROWS, (quantised(random(64, 64), 4, 32),), None, None],
        linear_attributes("float") | {"function": function},
        lambda *x, function=function: ops.gated_linear(*x, function=function))  # fmt: skip
IDS = torch.tensor([[3, 0, 46, 3]])
for bits in (4, 8):
    add(f"embedding_{bits}", "mote.embedding", [IDS, (quantised(random(47, 64), bits, 32),)], {}, ops.embedding)
add("embedding_dense", "mote.embedding", [IDS, (random(47, 64),)], {}, ops.embedding)


def stack(experts: int, rows: int, columns: int, bits: int = 4) -> Stack:
    return Stack(quantised(random(rows, columns, seed=expert), bits, 32) for expert in range(experts))


CHOSEN, SHARES = torch.tensor([[0, 2], [1, 2], [2, 0], [1, 0], [2, 1]]), random(5, 2).softmax(-1)
add("head_linear", "mote.head_linear", [random(1, 5, 3, 32), (stack(3, 20, 32),)], linear_attributes("float"),
    ops.head_linear)  # fmt: skip
add("expert_linear", "mote.expert_linear", [random(5, 32), CHOSEN, (stack(3, 20, 32),)], linear_attributes("float"),
    ops.expert_linear)  # fmt: skip
for layout, other in (
    ("concatenated", {}), ("interleaved", {"limit": 0.7, "alpha": 1.702}), ("single", {}),
    ("concatenated", {"gate_softcap": 2.0, "up_softcap": 3.0}),
):  # fmt: skip
    wide = 32 if layout == "single" else 64
    operands = [random(5, 32), CHOSEN, SHARES, (stack(3, wide, 32),), (stack(3, 32, 32),), (random(3, wide),),
                (random(3, 32),)]  # fmt: skip
    given = {"function": "silu", "layout": layout} | {key: Numbers((value,)) for key, value in other.items()}
    add(f"moe_{layout}_{len(other)}_{'cap' if 'up_softcap' in other else ''}", "mote.moe_experts", operands,
        linear_attributes("float") | given,
        lambda *x, layout=layout, other=other: ops.moe_experts(*x, layout=layout, **other))  # fmt: skip

add("rms_norm", "mote.rms_norm", [ROWS, (NORM,)], {"eps": numbers(1e-5), "unit_offset": integers(1)},
    lambda x, w: ops.rms_norm(x, w, eps=1e-5, unit_offset=1))  # fmt: skip
add("rms_norm_plain", "mote.rms_norm", [ROWS, None], {"eps": numbers(1e-5)}, lambda x, w: ops.rms_norm(x, w, eps=1e-5))
add("layer_norm", "mote.layer_norm", [ROWS, (NORM,), (random(64, seed=3),)], {"eps": numbers(1e-5)},
    lambda x, w, b: ops.layer_norm(x, w, b, eps=1e-5))  # fmt: skip
for layout in ("half", "interleaved"):
    add(f"rope_table_{layout}", "mote.rope_table", [POSITIONS, (random(4).abs(),)],
        {"layout": layout, "scale": numbers(1.2)},
        lambda p, f, layout=layout: tuple(ops.rope_table(p, f, scale=1.2, layout=layout)))  # fmt: skip
for layout in ("half", "half_flipped", "interleaved"):
    add(f"rope_{layout}", "mote.rope", [random(1, 4, 5, 8), random(1, 5, 6), random(1, 5, 6, seed=2)],
        {"layout": layout}, lambda x, c, s, layout=layout: ops.rope(x, c, s, layout=layout))  # fmt: skip


def with_states(compute: Callable, caches: dict | None = None, recurrent: Tensor | None = None) -> Callable:
    def run(*operands):
        state = ops.ReferenceState()
        if caches is not None:
            state.caches[0] = (caches["keys"], caches["values"])
        if recurrent is not None:
            state.recurrent[0] = recurrent
        with state:
            return compute(*operands)

    return run


PAST = {"keys": halves(KV_HEADS, FIRST, WIDTH), "values": halves(KV_HEADS, FIRST, WIDTH, seed=4)}


def held(caches: dict[str, Tensor]) -> dict[str, Tensor]:
    """Caches of CAPACITY positions; what lies behind those that count must not matter."""
    found = {}
    for part, rows in caches.items():
        cache = random(1, rows.shape[0], CAPACITY, rows.shape[2], seed=8)
        cache[0, :, : rows.shape[1]] = rows
        found[f"{part}0"] = cache
    return found


def attention(name: str, lse: bool = False, sinks=None, slopes=None, chosen=None, bias=None, **attributes) -> None:
    keys = (1, KV_HEADS, TOKENS, WIDTH)
    qkv = [random(1, HEADS, TOKENS, WIDTH), halves(*keys), halves(*keys, seed=5)]
    compute = ops.attention_lse if lse else ops.attention
    given = {key: numbers(value) if isinstance(value, float) else integers(value) for key, value in attributes.items()}
    add(name, "mote.attention_lse" if lse else "mote.attention", [*qkv, POSITIONS, sinks, slopes, chosen, bias],
        {"state": integers(0), "scale": numbers(0.3), **given},
        with_states(lambda *x: compute(*x, state=0, scale=0.3, **attributes), PAST),
        StateSpec("cache", "kv_cache", KV_HEADS, WIDTH, WIDTH), held(PAST))  # fmt: skip


attention("attention")
attention("attention_window", window=3)
attention("attention_chunked", window=4, chunked=1)
attention("attention_bidirectional", bidirectional=1)
attention("attention_softcap", softcap=2.0)
attention("attention_stride", stride=2)
attention("attention_sinks", lse=True, sinks=(random(HEADS),), window=3)
attention("attention_alibi", slopes=(random(HEADS).abs(),))
attention("attention_bias", bias=random(1, TOKENS, HEADS, 3))
attention("attention_chosen", chosen=torch.tensor([[0, 3], [-1, 2], [4, 5], [-1, -1], [1, 7]])[None, :, None])

SHORT = halves(1, 3, 6)
add("short_conv", "mote.short_conv", [random(1, TOKENS, 6), (random(6, 4),), (random(6),)], {"state": integers(0)},
    with_states(lambda *x: recurrent_ops.short_conv(*x, state=0), recurrent=SHORT),
    StateSpec("past", "recurrent", shape=(1, 3, 6)), {"state0": SHORT})  # fmt: skip
MATRIX = halves(1, HEADS, 6, WIDTH)
for name, decay, beta in (
    ("plain", None, None), ("decay", random(1, TOKENS, HEADS).sigmoid(), None),
    ("delta", random(1, TOKENS, HEADS, WIDTH).sigmoid(), random(1, TOKENS, HEADS).sigmoid()),
):  # fmt: skip
    qkv = [random(1, TOKENS, 2, WIDTH), random(1, TOKENS, 2, WIDTH, seed=6), random(1, TOKENS, HEADS, 6)]
    add(f"linear_attention_{name}", "mote.linear_attention", [*qkv, decay, beta], {"state": integers(0)},
        with_states(lambda *x: recurrent_ops.linear_attention(*x, state=0), recurrent=MATRIX),
        StateSpec("memory", "recurrent", shape=(1, HEADS, 6, WIDTH)), {"state0": MATRIX})  # fmt: skip
# Positive, or some scores would be 0: of equal ones torch.topk takes any.
QK = [random(1, HEADS, TOKENS, WIDTH).abs(), halves(1, KV_HEADS, TOKENS, WIDTH).abs()]
INDEX_KEYS = {"keys": PAST["keys"].abs(), "values": PAST["values"][..., :0]}
for name, topk, other in (("keys", 3, {}), ("blocks", 2, {"block": 3}), ("strides", 2, {"stride": 2})):
    add(f"indexer_{name}", "mote.indexer", [*QK, POSITIONS, random(1, TOKENS, HEADS).abs()],
        {"state": integers(0), "topk": integers(topk), **{key: integers(value) for key, value in other.items()}},
        with_states(lambda *x, topk=topk, other=other: sparse_ops.indexer(*x, state=0, topk=topk, **other),
                    INDEX_KEYS),
        StateSpec("index", "kv_cache", KV_HEADS, WIDTH, 0), held({"keys": INDEX_KEYS["keys"]}))  # fmt: skip


def stored_bytes(part: Part, index: int) -> bytes:
    value, bits = part.stored[index], part.specs[index].bits
    if isinstance(value, Stack):
        value = torch.cat([pack(each, bits).flatten() for each in value])
    elif isinstance(value, QuantizedWeight):
        value = pack(value, bits)
    value = value.contiguous()
    return (value if value.dim() else value[None]).view(torch.uint8).numpy().tobytes()


def numpy_of(x: Tensor) -> np.ndarray:
    return x.contiguous().numpy().astype(np.int32) if x.dtype == torch.int64 else x.contiguous().numpy()


def contents() -> dict[str, bytes]:
    """The stored bytes of all weights."""
    return {
        spec.name: stored_bytes(case.part, index)
        for case in CASES.values()
        for index, spec in enumerate(case.part.specs)
    }


def parts() -> list[Subgraph]:
    for name, case in CASES.items():
        case.part.subgraph.method.name = name
    return [case.part.subgraph for case in CASES.values()]


def run(interpreter: Interpreter, references: Sequence[Reference]) -> Iterator[tuple[str, list[np.ndarray]]]:
    """What an asset of all parts computes: the outputs of each."""
    for (name, case), reference in zip(CASES.items(), references, strict=True):
        inputs = {
            port.name: numpy_of(x).astype(port.dtype).reshape(port.shape)
            for port, x in zip(reference.inputs, case.inputs, strict=True)
        }
        states = {port.name: np.zeros(port.shape, port.dtype) for port in reference.states}
        states |= {key: value.contiguous().numpy().astype(states[key].dtype) for key, value in case.states.items()}
        held = {key: interpreter.array(value) for key, value in states.items()}
        found = interpreter.call(reference.function, inputs, held)
        # Tensors of more than 5 axes may be held flat.
        made = [found[port.name] for port in reference.outputs]
        pairs = zip(made, case.expected(), strict=True)
        yield name, [output.reshape(y.shape) if y.dim() > 5 else output for output, y in pairs]


def check(name: str, outputs: Sequence[np.ndarray]) -> None:
    """Asserts that they are what PyTorch computes."""
    for output, expected in zip(outputs, CASES[name].expected(), strict=True):
        made = torch.from_numpy(output)
        assert made.shape == expected.shape
        if not expected.is_floating_point():
            assert torch.equal(made.to(expected.dtype), expected)
            continue
        error = (made - expected).abs().max() / expected.abs().max()
        assert error <= TOLERANCE, float(error)
