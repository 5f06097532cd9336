"""Scores of candidates by a profile. Pure."""
