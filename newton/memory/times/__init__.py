"""Times that texts name, and the search for memories of a time."""
