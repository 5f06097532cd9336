"""Erasure of a person: the names by which memory knows them, and the scan of all stored texts for these names."""
