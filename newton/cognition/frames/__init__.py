"""Selection of a frame (a kind of input, with questions and priorities) for an input."""
