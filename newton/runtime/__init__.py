"""Processes and doors."""
