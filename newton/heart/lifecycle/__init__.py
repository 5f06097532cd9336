"""Memory lifecycle: evidence, the rules of each kind, and the engine that applies due transitions."""
