"""Compaction: selection of messages of a view to replace by shorter text, creation of that text, and its storage."""
