"""The chat page: its sources, what builds them, and the routes that serve what is built."""
