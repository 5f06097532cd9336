"""The lives of memories: which changes of state there are, which are due, and making them."""
