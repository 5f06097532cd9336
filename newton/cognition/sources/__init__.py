"""The sources that a context is gathered from."""
