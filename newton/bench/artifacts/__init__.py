"""Benchmark of artifacts: whether a line of a long text is found again."""
