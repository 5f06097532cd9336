"""Compaction of conversations: the service and the summaries of blocks."""
