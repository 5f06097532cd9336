"""Who may speak to the daemon, and for which agent."""
