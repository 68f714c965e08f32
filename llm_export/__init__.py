"""Exports Hugging Face checkpoints to `.mote` programs."""

import logging

# torchao announces optional CUDA extensions that a CPU build lacks; exporting does not use them.
logging.getLogger("torchao").addFilter(lambda record: "Failed to load" not in record.getMessage())
for _name in ("torchao", "torchao.kernel.intmm"):
    logging.getLogger(_name).setLevel(logging.ERROR)
del _name
