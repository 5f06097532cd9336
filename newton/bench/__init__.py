"""Benchmarks: how good and how fast, as receipts that anyone can make again."""
