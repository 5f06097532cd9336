"""Conversations: the append-only log of sessions, and each line of it as a memory."""
