"""Frames, profiles, skills and documents, read from files into frozen, validated models."""
