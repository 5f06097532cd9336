"""The identity of an agent, and the detection of standing instructions in messages."""
