"""Why instructions are not taken, and the words for each."""

from __future__ import annotations

from llm_export.partition.backend import Reason

MAX_RANK = 8  # of a view
MAX_WIDTH = 1024  # of keys of a recurrence
MAX_MAP_RANK = 4  # of what `map` walks, once neighbouring dimensions are one


class Refusal(Reason):
    OP = "Vulkan has no such op"
    DTYPE = "dtype {dtype}"
    RANK = f"rank {{rank}}: must be at most {MAX_RANK}"
    GROWTH = "a size or stride that does not grow linearly with T"
    INPUT = "{name} that the part computes"
    COMPUTED_WEIGHT = "a weight that is computed"
    WEIGHT_FORM = "a weight of dtype {dtype} and rank {rank}"
    QUANTIZED_OPERAND = "a weight of {bits} bits where a dense one is needed"
    INT8_WITH_DENSE = "int8 activations with a dense weight"
    SCALES = "int8 inputs that are not rounded in groups, with float16 scales"
    STRIDES = "rows with gaps between their elements"
    ROWS = "rows in more than two dimensions"
    FUNCTION = "function {function}"
    STATE = "a state of kind {kind}"
    SPREAD = "values {width} wide beside index keys: must be 1"
    WIDTH = "heads {width} wide: must be even"
    WIDE = f"keys {{width}} wide: must be at most {MAX_WIDTH}"
    WALK = f"operands whose elements lie in more than {MAX_MAP_RANK} dimensions"
    GATE_ROWS = "{rows} rows of gates: must be a multiple of 16"
