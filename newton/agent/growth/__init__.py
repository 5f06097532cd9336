"""The growth report: how the agent developed over a period."""
