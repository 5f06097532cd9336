"""Reuse, update or rebuild of the context of a session."""
