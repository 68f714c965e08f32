"""QNN, ahead of time; README.md is the place to start."""
