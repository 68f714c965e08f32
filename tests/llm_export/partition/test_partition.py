"""A model that was partitioned computes what it computed before, to the bit."""

from __future__ import annotations

import pytest
import torch
from transformers import GPT2Config, LlamaConfig

from llm_export.partition import Refusal, partition
from llm_export.partition.backend import Unsupported
from llm_export.partition.targets import Target
from llm_export.plan import plan
from llm_export.program.instructions import Instruction
from tests.llm_export.interpreter import Interpreter
from tests.llm_export.partition.keeping_backend import KeepingBackend
from tests.llm_export.tiny import Tiny, export_tiny

CONFIGS = {
    "llama": LlamaConfig(
        vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=True,
    ),
    "gpt2": GPT2Config(vocab_size=128, n_embd=64, n_layer=2, n_head=4, n_positions=64),
}  # fmt: skip


@pytest.fixture(scope="module", params=CONFIGS)
def tiny(request, tmp_path_factory) -> Tiny:
    return export_tiny(CONFIGS[request.param], tmp_path_factory.mktemp(request.param))


def everything_but_states(instruction: Instruction) -> bool:
    return "state" not in instruction.attributes and instruction.op != "mote.embedding"


def logits(tiny: Tiny, planned, backends) -> list[torch.Tensor]:
    """Of a prefill of 7 tokens, two decode steps and a call of verify."""
    interpreter = Interpreter(planned, tiny.weights(), {blob: m for b in backends for blob, m in b.methods.items()})
    ids = torch.arange(3, 15)[None]
    calls = [("prefill", 0, 7), ("decode", 7, 8), ("decode", 8, 9), ("verify", 9, 12)]
    return [interpreter.run(name, ids[:, begin:end], begin) for name, begin, end in calls]


def check_same(tiny: Tiny, *backends: KeepingBackend):
    partitioned = partition(tiny.lowered, [Target(backends)])
    for ours, theirs in zip(
        logits(tiny, plan(partitioned), backends), logits(tiny, tiny.planned, ()), strict=True
    ):
        assert torch.equal(ours, theirs)
    return partitioned


def test_islands_lie_between_attentions(tiny):
    backend = KeepingBackend("most", everything_but_states, min_instructions=2)
    partitioned = check_same(tiny, backend)
    for method in partitioned.program.methods:
        ops = [i.op for i in method.instructions if method.values[i.outputs[0]].alias_of < 0]
        attentions = ops.count("mote.attention")
        assert attentions == 2
        assert ops.count("mote.delegate") <= attentions + 1
    assert {r.reason for r in partitioned.refusals} >= {"not mote.attention", "not mote.embedding"}
    assert partitioned.num_delegated["most", "decode"][0] > 0


@pytest.mark.parametrize("seed", range(12))
def test_any_choice_of_instructions_gives_the_same_bits(tiny, seed):
    generator = torch.Generator().manual_seed(seed)
    chosen: dict[tuple[str, str], bool] = {}

    def takes(instruction: Instruction) -> bool:
        key = (instruction.op, instruction.origin)
        return everything_but_states(instruction) and chosen.setdefault(
            key, bool(torch.rand((), generator=generator) < 0.6)
        )

    check_same(
        tiny,
        KeepingBackend("some", takes),
        KeepingBackend("others", everything_but_states, min_instructions=seed % 3 + 1),
    )


def test_a_second_backend_gets_what_falls_out_of_small_islands(tiny):
    first = KeepingBackend("first", everything_but_states, min_instructions=10_000)
    second = KeepingBackend("second", everything_but_states)
    partitioned = check_same(tiny, first, second)
    assert {delegate.backend for delegate in partitioned.program.delegates} == {"second"}
    assert any(r.backend == "first" and "fewer than 10000" in r.reason for r in partitioned.refusals)
    assert all(r.target == "first+second" for r in partitioned.refusals)


def all_but_embedding(instruction: Instruction) -> bool:
    return instruction.op != "mote.embedding"


def uses_states(method) -> bool:
    return any("state" in instruction.attributes for instruction in method.instructions)


def test_a_backend_that_owns_states_gets_attention_too(tiny):
    backend = KeepingBackend("owner", all_but_embedding, owns_states=True)
    partitioned = check_same(tiny, backend)
    assert not any(uses_states(method) for method in partitioned.program.methods)
    assert any(uses_states(method) for method in backend.methods.values())


def test_a_backend_that_owns_no_states_is_not_given_them(tiny):
    partitioned = check_same(tiny, KeepingBackend("most", all_but_embedding))
    assert all(uses_states(method) for method in partitioned.program.methods)
    assert any(r.reason == "mote.attention: it owns no states" for r in partitioned.refusals)


def test_a_state_belongs_to_one_side_in_all_methods(tiny):
    decode = tiny.lowered.methods[1]
    state = next(i.attributes["state"] for i in decode.instructions if "state" in i.attributes)

    class Partly(KeepingBackend):
        """Refuses one state in one method."""

        def lower(self, subgraph):
            if subgraph.method.name == decode.name:
                for instruction in subgraph.method.instructions:
                    if instruction.attributes.get("state") == state:
                        raise Unsupported("not this state")
            return super().lower(subgraph)

    partitioned = check_same(tiny, Partly("owner", all_but_embedding, owns_states=True))
    for method in partitioned.program.methods:
        assert {tuple(i.attributes["state"]) for i in method.instructions if "state" in i.attributes} == {tuple(state)}
    assert any(r.reason == "not all that touches its state is taken" for r in partitioned.refusals)


def test_targets_stand_side_by_side_over_the_same_weights(tiny):
    backend = KeepingBackend("most", everything_but_states)
    program = partition(tiny.lowered, [Target((backend,)), Target()]).program
    assert [(m.target, m.name) for m in program.methods] == [
        (target, m.name) for target in ("most", "cpu") for m in tiny.lowered.methods
    ]
    assert program.methods[len(tiny.lowered.methods) :] == tiny.lowered.methods
    assert program.weights is tiny.lowered.weights


def test_a_refusal_names_everything(tiny):
    partitioned = partition(tiny.lowered, [Target((KeepingBackend("none", lambda _: False),))])
    assert not partitioned.program.delegates
    refusal = next(r for r in partitioned.refusals if r.op == "mote.attention" and r.method == "decode")
    assert refusal == Refusal("none", "decode", "mote.attention", refusal.origin, "none", "not mote.attention")
    assert ".0." in refusal.origin or ".h.0" in refusal.origin
