"""Data of each language, one file by its ISO 639-1 code."""
