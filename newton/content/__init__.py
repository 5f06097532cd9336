"""Frames, profiles and other content that ships as data, read from YAML into frozen, validated models."""
