"""Parse and compare statements, to detect that two of them say the same. Pure."""
