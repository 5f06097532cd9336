"""Newton gives an agent a mind it can keep: memory, context and decisions on PostgreSQL."""

__version__ = "0.1.0"
