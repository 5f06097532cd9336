"""Parsing and comparison of statements: whether two say the same, and whether one replaces the other. Pure."""
