"""Talking with an agent as a person does, wherever it is: in this process, or behind a daemon."""
