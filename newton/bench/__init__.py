"""Benchmarks of Newton's quality and speed. The results can be reproduced."""
