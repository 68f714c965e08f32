"""Calibrates stacked experts one by one, each on the tokens that the router of the rounded model sends to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from llm_export.capture.hadamard import hadamard
from llm_export.capture.ops import expert_hidden, round_input
from llm_export.quantize.gptq import Inputs

ENOUGH = 4  # tokens for each column of a matrix; an expert that has fewer borrows some of others
BORROWED = 0.3  # how much a borrowed token counts beside one of the expert's own
NOISE = 0.1  # tokens of white noise for each column, as large as the inputs

# (expert, which of its matrices, its rows float32 [N, K], how to get the sums over its inputs or None if it has none)
# -> the rows as the file will have them.
Quantize = Callable[[int, int, Tensor, Callable[[], Inputs] | None], Tensor]


@dataclass
class Tokens:
    """What one moe_experts is given for all tokens of some lanes, and what its experts have made of them so far.

    x, output: float32 [N, D]   indices: int64 [N, top_k]   weights: float32 [N, top_k]
    """

    x: Tensor
    indices: Tensor
    weights: Tensor
    output: Tensor

    @classmethod
    def of(cls, lanes: Sequence[Sequence[Any]]) -> Tokens:
        """lanes: the arguments of the op in each lane"""
        x, indices, weights = (torch.cat([args[i] for args in lanes]) for i in range(3))
        return cls(x, indices, weights, torch.zeros_like(x))

    def sample(self, expert: int, columns: int) -> tuple[Tensor, Tensor]:
        """Returns rows of x to calibrate a matrix of an expert on, int64 [M], and how much each counts, float32 [M, 1].

        An expert that has fewer than ENOUGH tokens for each column borrows tokens of others, evenly over the text,
        that count BORROWED each.
        """
        is_own = (self.indices == expert).any(-1)
        own, others = is_own.nonzero()[:, 0], (~is_own).nonzero()[:, 0]
        missing = min(max(ENOUGH * columns - len(own), 0), len(others))
        borrowed = others[torch.arange(missing) * len(others) // max(missing, 1)]
        counts = torch.cat([torch.ones(len(own), 1), torch.full((missing, 1), BORROWED)])
        return torch.cat([own, borrowed]), counts

    def add(self, expert: int, gate_up: Tensor, down: Tensor, biases: Sequence[Tensor | None], gate: dict) -> None:
        """Adds what an expert makes of its tokens, by the op itself on a stack of one."""
        rows, slots = torch.where(self.indices == expert)
        weights = self.weights[rows, slots, None]
        arguments = (self.x[rows], torch.zeros_like(rows)[:, None], weights, gate_up[None], down[None])
        biases = [None if bias is None else bias[None] for bias in biases]
        self.output.index_add_(0, rows, torch.ops.mote.moe_experts(*arguments, *biases, **gate))


def calibrate_expert(
    expert: int, matrices: Sequence[Tensor], biases: Sequence[Tensor | None], gate: dict, lanes: Sequence[Tokens],
    quantize: Quantize,
) -> None:  # fmt: skip
    """Quantises an expert and adds what it makes of its tokens to their outputs.

    The lanes that are rounded round the inputs of both matrices too, as the gate's `activations` says. One that gets no
    token is rounded plainly: nothing tells whether what it is for is like the tokens of others.

    matrices: gate_up float32 [2F, D], down [D, F]   biases: [2F], [D]   gate: attributes of mote::moe_experts
    lanes: the tokens of the lanes that are rounded, and of those of the checkpoint: the same ones
    """
    rounded, wanted = lanes
    gate_up, down = matrices
    is_seen = bool((rounded.indices == expert).any())
    activations = gate.get("activations", "float")
    exact_gate = {**gate, "activations": "float"}

    def sums(inputs: Tensor, exact: Tensor, counts: Tensor) -> Inputs:
        exact = hadamard(exact) if activations == "rotated_int8" else exact
        return _sums(round_input(inputs, activations), exact, counts)

    def of_gate_up() -> Inputs:
        rows, counts = rounded.sample(expert, gate_up.shape[1])
        return sums(rounded.x[rows], wanted.x[rows], counts)

    def of_down() -> Inputs:
        rows, counts = rounded.sample(expert, down.shape[1])
        exact = expert_hidden(wanted.x[rows], gate_up, biases[0], **exact_gate)
        return sums(expert_hidden(rounded.x[rows], found, biases[0], **gate), exact, counts)

    found = quantize(expert, 0, gate_up, of_gate_up if is_seen else None)
    rounded.add(expert, found, quantize(expert, 1, down, of_down if is_seen else None), biases, gate)
    wanted.add(expert, gate_up, down, biases, exact_gate)


def _sums(rounded: Tensor, wanted: Tensor, counts: Tensor) -> Inputs:
    """Returns sums that do not tell more of an expert's inputs than its tokens do.

    Few tokens leave directions in which no error costs anything, and errors would be moved there, where another text
    finds them. What stands against it are borrowed tokens, and noise, which keeps weights where they are. Squared error
    of what a random layer makes of other tokens, in percent, by tokens of an expert (4 bits, 128 columns, 16 experts):

        tokens          8    32   64   128  256  512  2048
        plain rounding  3.7  3.7  3.7  3.7  3.7  3.7  3.7
        its own alone   3.3  3.1  2.9  2.5  1.8  1.5  1.2
        as here         2.4  1.8  1.7  1.5  1.4  1.3  1.2
    """
    found = Inputs.empty(rounded.shape[1])
    found.add(rounded * counts.sqrt(), wanted * counts.sqrt())
    found.add_noise(NOISE * rounded.shape[1] / float(counts.sum()))
    return found
