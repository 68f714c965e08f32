"""Bits by what they cost: within the budget, more for weights that matter more, and measured as each alone would do."""

import math
from dataclasses import replace

import pytest
import torch

from llm_export.calibrate.planner import LINEAR_BITS, choose, count_steps, plan_bits
from llm_export.calibrate.sensitivity import Probe, SensitivityRun
from llm_export.checkpoint import open_checkpoint
from llm_export.errors import ArgumentError
from llm_export.passes import fuse
from llm_export.program.formats import stored_bytes
from llm_export.program.specs import WeightSpec
from llm_export.quantize import Override, Recipe, quantize
from tests.captures import captured
from tests.contracts.architectures import save_tiny_checkpoint
from tests.llm_export.eager import EagerProgram

SEQUENCES = [torch.randint(128, (1, 24), generator=torch.Generator().manual_seed(i)) for i in range(2)]


def probe_of(name, divergence, rows=64):
    spec = WeightSpec((name,), (rows, 64), torch.float32, bits=4, group_size=32, activations="int8")
    errors = {bits: 4.0**-bits for bits in LINEAR_BITS}
    return Probe(spec, is_table=False, lane=1, bits=3, errors=errors, divergence=divergence)


def bits_a_weight(probes, chosen):
    stored = sum(stored_bytes(replace(p.spec, bits=bits)) for p, bits in zip(probes, chosen, strict=True))
    return 8 * stored / sum(math.prod(p.spec.shape) for p in probes)


@pytest.mark.parametrize("target", [3.0, 4.5, 5.2, 8.0])
def test_the_average_is_within_the_target_and_near_it(target):
    probes = [probe_of(f"w{i}", 2.0**i) for i in range(12)]
    chosen = choose(probes, [], target)
    assert target - 0.5 < bits_a_weight(probes, chosen) <= target
    assert chosen == sorted(chosen) and chosen[0] < chosen[-1]  # the more a weight matters, the more bits


def test_no_swap_of_one_step_loses_less():
    generator = torch.Generator().manual_seed(3)
    probes = [probe_of(f"w{i}", float(torch.rand(1, generator=generator))) for i in range(8)]
    chosen = choose(probes, [], 4.7)
    lost = sum(p.loss(bits) for p, bits in zip(probes, chosen, strict=True))
    for up in range(8):
        for down in range(8):
            swapped = list(chosen)
            more = [bits for bits in LINEAR_BITS if bits > chosen[up]]
            fewer = [bits for bits in LINEAR_BITS if bits < chosen[down]]
            if up == down or not more or not fewer:
                continue
            swapped[up], swapped[down] = more[0], fewer[-1]
            if bits_a_weight(probes, swapped) <= bits_a_weight(probes, chosen):
                assert sum(p.loss(bits) for p, bits in zip(probes, swapped, strict=True)) >= lost * 0.999


@pytest.mark.parametrize(("target", "expected"), [(1.5, "must be at least 2.7"), (9.0, "must be at most 8.7")])
def test_refuses_targets_that_no_bits_give(target, expected):
    with pytest.raises(ArgumentError, match=f"target_bits = {target}: {expected}"):
        choose([probe_of("a", 1.0), probe_of("b", 2.0)], [], target)


@pytest.fixture
def prepared(tmp_path):
    torch.set_num_threads(1)
    save_tiny_checkpoint("llama", tmp_path)
    checkpoint = open_checkpoint(tmp_path)
    methods = captured(checkpoint)
    return checkpoint, methods, fuse(quantize(methods, Recipe("8da4w")))


def test_what_is_measured_is_what_rounding_that_weight_alone_does(prepared):
    checkpoint, methods, fused = prepared
    run = SensitivityRun(fused, checkpoint.weights.rows, lambda is_table: (4,))
    probes = {probe.spec.name: probe for probe in run.measure(SEQUENCES[:1], lambda: None)}
    exact = fuse(quantize(methods, Recipe("none")))
    base = EagerProgram(exact, checkpoint.weights.read).run("verify", SEQUENCES[0]).log_softmax(-1)
    for probe in list(probes.values())[:5]:
        altered = EagerProgram(exact, lambda name: checkpoint.weights.read(name).clone())  # which are changed in place
        for source in probe.spec.sources:
            for name, value in altered.values.items():
                if source in exact.weights[name].sources:
                    spec = replace(probe.spec, bits=probe.bits, shape=tuple(value.shape))
                    start = 0
                    for part in exact.weights[name].sources:
                        rows = checkpoint.weights.shape(part)[0]
                        if part == source:
                            value[start : start + rows] = run._effective(spec, value[start : start + rows])
                        start += rows
        found = altered.run("verify", SEQUENCES[0]).log_softmax(-1)
        expected = float((base.exp() * (base - found)).sum())
        assert probe.divergence == pytest.approx(expected, rel=0.02, abs=1e-5)


def test_a_plan_is_overrides_and_leaves_those_of_the_user(prepared):
    checkpoint, methods, fused = prepared
    steps = []
    fixed = [Override.parse("model.layers.0.*=8da8w")]
    fixed_fused = fuse(quantize(methods, Recipe("8da4w"), fixed))
    planned = plan_bits(fixed_fused, checkpoint, SEQUENCES, 6.0, fixed, steps.append)
    assert planned and not any(override.pattern.startswith("model.layers.0.") for override in planned)
    assert sum(steps) == count_steps(fused)
    quantized = quantize(methods, Recipe("8da4w"), [*planned, *fixed])
    specs = {spec.sources: spec for spec in fuse(quantized).weights.values() if spec.bits}.values()
    assert 8 * sum(map(stored_bytes, specs)) / sum(math.prod(spec.shape) for spec in specs) <= 6.0
    assert {spec.bits for spec in specs if "layers.0." in spec.name} == {8}


def test_stacked_experts_keep_their_bits_which_count(tmp_path):
    torch.set_num_threads(1)
    save_tiny_checkpoint("mixtral", tmp_path)
    checkpoint = open_checkpoint(tmp_path)
    methods = captured(checkpoint)
    planned = plan_bits(fuse(quantize(methods, Recipe("8da4w"))), checkpoint, SEQUENCES, 4.9, [])
    assert planned and not any("experts" in override.pattern for override in planned)
    fused = fuse(quantize(methods, Recipe("8da4w"), planned))
    specs = {spec.sources: spec for spec in fused.weights.values() if spec.bits}
    assert {spec.bits for spec in specs.values() if len(spec.shape) == 3} == {4}
    assert 8 * sum(map(stored_bytes, specs.values())) / sum(math.prod(spec.shape) for spec in specs.values()) <= 4.9
