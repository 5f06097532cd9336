"""Import of memories from files, and export of an agent to a file."""
