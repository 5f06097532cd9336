"""Benchmarks of quality and speed, with reproducible results."""
