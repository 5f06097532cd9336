"""Working memory of a session: the memories that it used, up to a capacity."""
