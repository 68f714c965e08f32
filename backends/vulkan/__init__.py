"""Whole decoders on a GPU through Vulkan: lowering.py is the half ahead of time."""
