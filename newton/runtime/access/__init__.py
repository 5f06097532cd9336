"""Authentication and authorization of the daemon's clients."""
