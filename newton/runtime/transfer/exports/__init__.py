"""Readers of what other programs export: each yields the items of an import."""
