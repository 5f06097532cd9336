"""Commands that talk with an agent and show its contexts."""
