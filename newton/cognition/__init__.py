"""Assembly of contexts: choose a frame (kind of input) for an input, then select, score and render memories."""
