"""OpenAI's /v1/responses: items in, items out, and the last answers kept for those who go on from them."""
