"""Assembly of the text of a context from scored memories, within a token budget."""
