"""Data about sessions: what is put into them, what they used, and their statistics."""
