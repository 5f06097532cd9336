"""Kinds of questions, and the gathering of memories for each kind. Pure."""
