"""Lifecycle of memories: the evidence on their states, the rules of each kind, and the engine that applies them."""
