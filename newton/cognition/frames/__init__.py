"""Selection of a frame (a kind of thinking, with questions and priorities) for an input."""
