"""Process entry points: daemon, CLI, APIs and their wiring."""
