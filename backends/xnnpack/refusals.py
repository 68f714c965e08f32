"""Why instructions are not taken: the limits of XNNPACK and of what is built on it, and the words for each."""

from __future__ import annotations

from llm_export.partition.backend import Reason

MAX_RANK = 6
MAX_CONSTANT_ELEMENTS = 64
MAX_POWER = 8


class Refusal(Reason):
    OP = "XNNPACK has no such op"
    DTYPE = "dtype {dtype}"
    RANK = f"rank {{rank}}: must be 1 to {MAX_RANK}"
    SIZE = "size {size}"
    GROWING_ATTRIBUTE = "{attribute} grows with T"
    OUTPUT_TWICE = "a value is given out twice"
    COMPUTED_WEIGHT = "a weight that is computed"
    WEIGHT_OPERAND = "a weight where an activation is needed"
    QUANTIZED_OPERAND = "a weight of {bits} bits where a dense one is needed"
    WEIGHT_FORM = "a weight of dtype {dtype} and rank {rank}"
    CONSTANTS = "two constants"
    BROADCAST_RANK = "a broadcast that changes the rank"
    BROADCAST_SIZES = "sizes {first} and {second}"
    RESHAPE = "a reshape in which several sizes grow with T"
    SLICE_BOUND = "a slice at {bound} of {size}"
    SLICE_LENGTH = "a slice of length {length}"
    SLICE_STEPS = "a slice with steps"
    AXIS = "not over the last dimension"
    BOUNDS = "bounds that do not ascend"
    EXPONENT = f"an exponent that is neither 0.5, -0.5 nor a whole number from 1 to {MAX_POWER}, or minus one"
    EXPANSION_GROWS = "an expansion to a size that grows with T"
    EXPANSION = f"an expansion to {{count}} times the elements: must be at most {MAX_CONSTANT_ELEMENTS}"
    SHAPE = "a shape that is not computed so"
    INT8_WITH_DENSE = "int8 activations with a dense weight"
    ROTATED = "inputs that are rotated"
    GROUPED = "inputs that are rounded in groups, or weights with float16 scales"
    MATRIX_RANK = "a weight of rank {rank}"
    TIED = "the embedding's weight: one copy serves both"
    FUNCTION = "function {function}"
