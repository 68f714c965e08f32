"""Trains the bundled demo checkpoints from the Python standard library."""
