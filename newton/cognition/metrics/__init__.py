"""Measurement of the quality of contexts."""
