"""Events that an agent lived through."""
