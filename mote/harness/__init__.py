"""Published tasks on a program file: what lm-eval, EleutherAI's evaluation harness, asks of a model and scores."""
