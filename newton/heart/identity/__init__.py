"""The identity of an agent and standing instructions."""
