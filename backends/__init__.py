"""Backends, ahead of time: a folder each, installed as llm_export.backends."""
