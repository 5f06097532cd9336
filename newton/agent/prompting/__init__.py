"""Parts that Newton adds to the prompts of a session: the system message, and a block before each input."""
