"""GPTQ: codes of a weight that keep what it makes of the inputs of a text, not its numbers.

Columns are rounded one after another, and those that follow take back what rounding one did to the products. Here the
products to keep are those of the checkpoint with its own inputs, so weights also make up for errors in front of them.
Source: arXiv 2210.17323 algorithm 1; for inputs that are off already: arXiv 2504.02692 section 3
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from llm_export.errors import FileError
from llm_export.program.formats import FORMATS
from llm_export.program.specs import WeightSpec
from llm_export.quantize import affine
from llm_export.quantize.affine import HEADROOM, MAX_SUM, QuantizedWeight, joined, quantize_rows

VERSION = "gptq 2"  # another one makes results that are kept on disk void
DAMPING = 0.01  # of the mean of the gram matrix's diagonal
SHARE = 1.0  # of the errors of the inputs that a weight makes up for
NUM_SWEEPS = 2
BLOCK_ROWS = 2048  # which bounds temporaries
MAX_REFITTED_BITS = 4  # with more, a scale that is refitted gains nothing and may let sums become too large


@dataclass
class Inputs:
    """Sums over tokens, of a linear's inputs x as the file rounds them and of those, y, that the checkpoint gives it.

    gram: x x^T, float32 [K, K]   cross: y x^T, float32 [K, K]
    """

    gram: Tensor
    cross: Tensor

    @classmethod
    def empty(cls, columns: int) -> Inputs:
        return cls(torch.zeros(columns, columns), torch.zeros(columns, columns))

    def add(self, rounded: Tensor, wanted: Tensor) -> None:
        """rounded, wanted: float32 [.., K], of the same tokens"""
        rounded, wanted = rounded.flatten(0, -2), wanted.flatten(0, -2)
        self.gram.addmm_(rounded.T, rounded)
        self.cross.addmm_(wanted.T, rounded)

    def add_noise(self, share: float) -> None:
        """Adds inputs that are alike in all directions and equal to the checkpoint's. share: of the sums so far"""
        size = share * self.gram.diagonal().mean()
        self.gram.diagonal().add_(size)
        self.cross.diagonal().add_(size)


@dataclass(frozen=True)
class Metric:
    """How much errors of a row matter: e gram e^T.

    gram: float32 [K, K], positive definite   factor: upper float32 [K, K], factor^T factor is the inverse of gram
    shift: float32 [K, K]: rows + rows shift are the best rows that need not be rounded
    """

    gram: Tensor
    factor: Tensor
    shift: Tensor

    @classmethod
    def of(cls, inputs: Inputs) -> Metric:
        gram = inputs.gram.double()
        size = float(gram.diagonal().mean())
        gram = gram / (size or 1.0)
        gram.diagonal().add_(DAMPING)
        away = (inputs.cross.double() / (size or 1.0) - gram).T
        away.diagonal().add_(DAMPING)
        lower = torch.linalg.cholesky(gram)
        shift = torch.cholesky_solve(away, lower).T * SHARE
        lower = torch.linalg.cholesky(gram.flip(0, 1))
        factor = torch.linalg.solve_triangular(lower, torch.eye(len(gram), dtype=gram.dtype), upper=False).flip(0, 1)
        return cls(gram.float(), factor.float().contiguous(), shift.float())

    def errors(self, weight: QuantizedWeight, target: Tensor) -> Tensor:
        """Returns the error of each row, float32 [N]."""
        off = weight.dequantize() - target
        return (off @ self.gram).mul_(off).sum(-1)


def gptq(rows: Tensor, spec: WeightSpec, inputs: Inputs) -> QuantizedWeight:
    """Quantises a weight as its spec says.

    rows: float32 [N, K], rotated if the spec says so
    Returns: rows whose error, in the metric of the inputs, is at most that of quantize_rows
    Errors: FileError if a value is not finite
    """
    if not bool(torch.isfinite(rows).all()):
        raise FileError(f"{spec.name}: holds NaN or infinity; it cannot be quantised")
    metric = Metric.of(inputs)
    return joined([_block(part, spec, metric) for part in rows.split(BLOCK_ROWS)])


def _block(rows: Tensor, spec: WeightSpec, metric: Metric) -> QuantizedWeight:
    target = rows + rows @ metric.shift
    kind = {"per_channel": spec.per_channel, "signed": spec.signed}
    plain = quantize_rows(target, spec.bits, spec.group_size, spec.name, **kind)
    scales, refitted = plain.scales, spec.bits <= MAX_REFITTED_BITS
    while True:
        found = _rounded(target, spec, scales, metric.factor)
        for _ in range(NUM_SWEEPS):
            found = _sweep(_refitted(found, target, metric.gram) if refitted else found, target, spec, metric.gram)
        largest = affine._largest_sums(found)
        if bool((largest <= MAX_SUM).all()):
            break
        scales = torch.where(largest > MAX_SUM, scales * (largest / MAX_SUM).to(torch.float32) * HEADROOM, scales)
        refitted = False
    worse = metric.errors(found, target) > metric.errors(plain, target)
    return QuantizedWeight(*(
        torch.where(worse.view(-1, *[1] * (a.dim() - 1)), b, a) for a, b in zip(found, plain, strict=True)
    ))  # fmt: skip


def _rounded(target: Tensor, spec: WeightSpec, scales: Tensor, factor: Tensor) -> QuantizedWeight:
    """Rounds groups of columns in order; the multiplier of each is the one, of what is tried, that leaves least."""
    work, size = target.clone(), spec.group_size
    codes = torch.empty(target.shape, dtype=torch.int8)
    multipliers = torch.empty(len(target), target.shape[1] // size, dtype=torch.int8)
    for group in range(multipliers.shape[1]):
        columns = slice(group * size, (group + 1) * size)
        tried = _tried(work[:, columns], spec, scales)  # [C, N]
        rounded, errors = _feed_errors(work[:, columns], tried * scales, factor[columns, columns], spec.bits)
        best = errors.square().sum(-1).argmin(0)
        each = torch.arange(len(best))
        codes[:, columns], multipliers[:, group] = rounded[best, each].to(torch.int8), tried[best, each].to(torch.int8)
        work[:, columns.stop :].addmm_(errors[best, each], factor[columns, columns.stop :], alpha=-1)
    return QuantizedWeight(codes, multipliers, scales)


def _tried(block: Tensor, spec: WeightSpec, scales: Tensor) -> Tensor:
    """Returns multipliers for one group of each row, float32 [C, N]. block: [N, group_size]"""
    if spec.per_channel:
        return (scales > 0).float()[None]
    signs = affine._signs(block) if spec.signed and spec.bits > 1 else torch.ones(len(block))
    wanted = affine._wanted_scales(block, spec.bits, spec.signed and spec.bits > 1)
    parts = [affine._whole((wanted * part)[:, None], scales, spec.bits)[:, 0] for part in affine.TRIED[spec.bits]]
    return torch.stack(parts) * signs


def _feed_errors(block: Tensor, steps: Tensor, factor: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Rounds one group of columns with each of several steps.

    block: [N, group_size]   steps: [C, N]   factor: its part for these columns
    Returns: codes, and errors divided by the diagonal of the factor, float32 [C, N, group_size] each
    """
    steps = torch.where(steps == 0, 1.0, steps)
    left = block.expand(len(steps), -1, -1).permute(2, 0, 1).contiguous()  # columns first: each is read as a whole
    codes = torch.empty_like(left)
    for index in range(len(left)):
        codes[index] = _nearest(left[index] / steps, bits)
        error = left[index].sub(codes[index] * steps).div_(factor[index, index])
        left[index + 1 :].sub_(factor[index, index + 1 :, None, None] * error)
        left[index] = error
    return codes.permute(1, 2, 0), left.permute(1, 2, 0)


def _nearest(values: Tensor, bits: int) -> Tensor:
    if bits == 1:
        return torch.where(values < 0, -1.0, 1.0)
    return values.round().clamp_(FORMATS[bits].code_min, FORMATS[bits].code_max)


def _refitted(weight: QuantizedWeight, target: Tensor, gram: Tensor) -> QuantizedWeight:
    """Gives each row the scale with which its codes leave the least error."""
    whole = weight._replace(scales=torch.ones_like(weight.scales)).dequantize()
    image = whole @ gram
    along, own = (image * target).sum(-1), (image * whole).sum(-1)
    return weight._replace(scales=torch.where((own > 0) & (along > 0), along / own.clamp(min=1e-30), weight.scales))


def _sweep(weight: QuantizedWeight, target: Tensor, spec: WeightSpec, gram: Tensor) -> QuantizedWeight:
    """Moves the codes of one column after another to where they leave the least error, the others as they are."""
    steps, size = weight.group_scales(), spec.group_size
    off = weight.dequantize() - target
    codes = weight.codes.T.to(torch.float32).contiguous()  # [K, N]
    for group in range(steps.shape[1]):
        columns = slice(group * size, (group + 1) * size)
        own, step = gram[columns, columns], steps[:, group]
        safe = torch.where(step == 0, 1.0, step)
        slope = (off @ gram[:, columns]).T.contiguous()  # [group_size, N]
        moved = codes[columns].clone()
        for index in range(size):
            code = _nearest(moved[index] - slope[index] / own[index, index] / safe, spec.bits)
            slope.add_(own[index][:, None] * ((code - moved[index]) * step))
            moved[index] = code
        off[:, columns] += ((moved - codes[columns]) * step).T
        codes[columns] = moved
    return weight._replace(codes=codes.T.to(torch.int8).contiguous())
