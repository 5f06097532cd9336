"""Compaction: which messages of a view are replaced by shorter text, the text, and its storage."""
