"""What runs behind the server: models, their sessions and batches, who waits, and how much memory there is."""
