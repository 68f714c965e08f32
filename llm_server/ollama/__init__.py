"""Ollama's API: /api/chat, /api/generate and what lists models."""
