"""A person's will over memory: what is not to be kept, and what is to be forgotten."""
