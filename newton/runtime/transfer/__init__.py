"""Bringing memories in from files."""
