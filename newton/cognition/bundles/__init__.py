"""Stored contexts: trace, explanation, replay and diff."""
