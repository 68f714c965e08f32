"""Why instructions are not taken: the limits of QNN's HTP and of what is built on it, and the words for each."""

from __future__ import annotations

from llm_export.partition.backend import Reason

MAX_RANK = 5
MAX_CONTEXT_BYTES = 4 << 30
MAX_HALF = 65504.0
MAX_COUNTED = 2048  # whole numbers that float16 tells apart
MAX_SHARE = 8


class Refusal(Reason):
    OP = "QNN has no such op here"
    LENGTH = "calls of any length"
    DTYPE = "dtype {dtype}"
    RANK = f"rank {{rank}}: must be 1 to {MAX_RANK}"
    NUMBER = f"the number {{number}}: float16 holds up to {MAX_HALF:.0f}"
    OUTPUT_TWICE = "a value is given out twice, or as it came in"
    COMPUTED_WEIGHT = "a weight that is computed"
    WEIGHT_OPERAND = "a weight where an activation is needed"
    WEIGHT_FORM = "a weight of dtype {dtype} and rank {rank}"
    HALF_SCALES = "a weight with float16 scales"
    CONTEXT = "weights of {gigabytes} GB in one part: a context holds {most}"
    ROUNDED = "inputs that are rounded to int8"
    FUNCTION = "function {function}"
    CONSTANTS = "two constants"
    SHAPE = "a shape that is not computed so"
    SLICE_STEPS = "a slice with steps"
    AXIS = "not over the last dimension"
    STATE = "a state of kind {kind}, or with sink positions"
    INPUT = "{name} that the part computes"
    COUNTED = f"rows of {{width}}: float16 counts to {MAX_COUNTED}"
    ASCENDING = "the smallest elements"
    EXPERTS = (
        f"{{experts}} experts of which a token chooses {{chosen}}: calls of several tokens compute all of at most "
        f"{MAX_SHARE} for each chosen"
    )
    ATTENTION = "attention with {what}"
