"""The short convolutions are those of LFM2."""

from llm_export.capture.architectures.lfm2 import patch

__all__ = ["patch"]
