"""Benchmarks of Newton's quality and speed, run in a checkout. The results can be reproduced."""
