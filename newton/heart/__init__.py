"""Memories of the world and of what was lived through: facts and episodes."""
