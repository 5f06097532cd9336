"""The growth report: how an agent's decisions and memory developed over a period."""
