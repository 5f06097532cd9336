"""Benchmarks of conversations: how often contexts are rebuilt, and the size of the records of prompts."""
