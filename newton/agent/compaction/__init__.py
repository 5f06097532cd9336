"""Compaction: old messages of a conversation are replaced by summaries when the conversation becomes too long."""
