"""Markdown of a reply, rendered for a terminal while the reply is received."""
