"""Compaction of conversations: the service, and summaries of blocks."""
