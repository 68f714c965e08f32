"""Whole decoders as Core ML packages: lowering.py is the half ahead of time."""
