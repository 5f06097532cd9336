"""Sources from which the memories of a context are read."""
