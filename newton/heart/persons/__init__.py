"""The persons that a memory is about, first of all its user: their facts by section, and the questions about them."""
