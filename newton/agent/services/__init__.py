"""What a caller can do with one agent, one service per resource."""
