"""Answers that are given once more when the same request comes again."""
