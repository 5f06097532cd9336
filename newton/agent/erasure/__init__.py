"""Erasure of a person: the names that find them in texts, and the scan of all stored texts for these names."""
