"""What every API shares of HTTP: bodies, errors, streams, guards, the log and the metrics."""
