"""Mote's ops written in ops over tensors of known sizes, for backends that take whole models."""
