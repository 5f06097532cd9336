"""Tools of the agent's own model: their inputs, what runs them, and which of them a session is offered."""
