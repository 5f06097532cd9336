"""Scoring of candidates by a profile (weights, decay and order). Pure."""
