"""Every shader that computes products, forced on a device with all features and limits and on ones with fewer."""

from __future__ import annotations

import pytest
import torch

from backends.vulkan.lowering import VulkanBackend
from tests.backends.parts import TOKENS, Part, T, assert_near, linear_attributes, quantised, random
from tests.backends.vulkan.products import SIZES, int8_product

mote = torch.ops.mote
# What LP_NATIVE_VECTOR_WIDTH says makes the subgroups of lavapipe 4, 8 and 16 wide.
PROFILES = {
    "all": {},
    "subgroups of 4": {"LP_NATIVE_VECTOR_WIDTH": "128"},
    "subgroups of 16": {"LP_NATIVE_VECTOR_WIDTH": "512"},
    "least limits": {"MOTE_GPU_LIMITS": "shared_memory=16384,invocations=128,storage_range=134217728"},
    "few invocations": {"MOTE_GPU_LIMITS": "shared_memory=4096,invocations=32"},
}
VARIANTS = ["none", "dot", "subgroups", "dot+subgroups", "staging", "dot+staging"]


@pytest.fixture(params=VARIANTS)
def variant(request, monkeypatch, vulkan) -> str:
    monkeypatch.setenv("MOTE_VULKAN_PRODUCTS", request.param)
    return request.param


@pytest.mark.parametrize("bits,group_size,n,k", SIZES)
def test_int8_linear_to_the_bit(bits, group_size, n, k, variant):
    check_int8_linear(quantised(random(n, k), bits, group_size, bits == 5, bits != 5), n, k)


def check_int8_linear(weight, n: int, k: int, calls: tuple[int, ...] = TOKENS) -> None:
    bias = random(n)
    part = Part("mote.linear", [(1, T, k), weight, bias, (1, T, n), None], (1, T, n), linear_attributes("int8"))
    for tokens in calls:
        x, residual = random(1, tokens, k), random(1, tokens, n, seed=2)
        y = part.run(VulkanBackend(), tokens, (x, residual))
        assert torch.equal(y, int8_product(x, weight, bias, residual)), tokens


@pytest.mark.parametrize("profile", PROFILES)
def test_limits_and_sizes_of_subgroups(profile, variant, monkeypatch):
    for name, value in PROFILES[profile].items():
        monkeypatch.setenv(name, value)
    for bits, group_size in ((4, 32), (7, 256)):
        check_int8_linear(quantised(random(99, 512), bits, group_size), 99, 512, (1, 64))


def test_gates_read_twice_as_many_rows(variant):
    n, k = 48, 256
    weight = quantised(random(2 * n, k), 4, 32)
    attributes = linear_attributes("int8") | {"function": "silu"}
    part = Part("mote.gated_linear", [(1, T, k), weight, None, None], (1, T, n), attributes)
    for tokens in (1, 64):
        x = random(1, tokens, k)
        gate, up = int8_product(x, weight, torch.zeros(2 * n), torch.zeros(2 * n)).chunk(2, -1)
        assert_near(part.run(VulkanBackend(), tokens, (x,)), torch.nn.functional.silu(gate) * up, 1e-5)


@pytest.mark.parametrize("bits,group_size", [(1, 32), (3, 32), (4, 128), (8, 32)])
def test_linear_with_inputs_rounded_in_groups(bits, group_size, variant):
    n, k = 35, 256
    weight, bias = quantised(random(n, k), bits, group_size), random(n)
    part = Part("mote.linear", [(1, T, k), weight, bias, (1, T, n), None], (1, T, n), linear_attributes("grouped_int8"))
    for tokens in (1, 64):
        x, residual = random(1, tokens, k), random(1, tokens, n, seed=2)
        expected = mote.linear(x, weight.dequantize(), bias, residual, None, activations="grouped_int8")
        assert_near(part.run(VulkanBackend(), tokens, (x, residual)), expected, 1e-3)


def test_a_variant_that_the_device_lacks_is_refused(monkeypatch, vulkan):
    monkeypatch.setenv("MOTE_GPU_FEATURES", "subgroups")
    part = Part("mote.linear", [(1, T, 32), quantised(random(16, 32), 4, 32), None, None, None], (1, T, 16),
                linear_attributes("int8"))  # fmt: skip
    for wrong, says in (
        ("dot", "asks for dot: the GPU has subgroups"),
        ("fp16", "holds 'fp16': must be a list of none, "),
    ):
        monkeypatch.setenv("MOTE_VULKAN_PRODUCTS", wrong)
        with pytest.raises(AssertionError, match=f"MOTE_VULKAN_PRODUCTS {says}"):
            part.run(VulkanBackend(), 1, (random(1, 1, 32),))
