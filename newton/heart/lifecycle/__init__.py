"""Memory lifecycle: the evidence for state transitions, the rules of each kind, and the engine that applies them."""
