"""What the daemon tells those who listen to an agent."""
