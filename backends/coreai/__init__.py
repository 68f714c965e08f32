"""Whole decoders as Core AI assets: lowering.py is the half ahead of time."""
