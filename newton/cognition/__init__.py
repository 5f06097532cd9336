"""Assembly of contexts: choose a frame (a kind of thinking) for an input, then select, score and render memories."""
