"""Why instructions are not taken, and the words for each."""

from __future__ import annotations

from llm_export.partition.backend import Reason

MAX_UNROLLED = 32  # tokens of a recurrence, which is written out


class Refusal(Reason):
    OP = "it has no such op here"
    LENGTH = "calls of any length"
    DTYPE = "dtype {dtype}"
    COMPUTED_WEIGHT = "a weight that is computed"
    WEIGHT_FORM = "a weight of dtype {dtype} and rank {rank}"
    HALF_SCALES = "a weight with float16 scales"
    ROUNDED = "inputs that are rounded to int8"
    FUNCTION = "function {function}"
    STATE = "a state of kind {kind}"
    INPUT = "{name} that the part computes"
    RECURRENCE = f"a recurrence over {{tokens}} tokens at once: must be at most {MAX_UNROLLED}"
    RANK = "{rank} axes that an op tells apart: Core ML has at most 5"
    CARRIED = "attention {what}: caches that are inputs hold keys in two parts"
    GROUPS = "a weight with scales for groups of columns: the profile ane takes one for each row (--group-size channel)"
    PART = "a scatter over a part of the other axes"
